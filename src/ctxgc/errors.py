"""Every error that ctxgc raises, in one tree.

    CtxgcError
    ├── InputError (ValueError)         an argument cannot be used; nothing was changed
    │   ├── SegmentError                a field of a segment is wrong
    │   ├── DuplicateSegmentError       this id belongs to another text
    │   ├── UnknownSegmentError         no segment has this id
    │   ├── MessageError                a provider message has an unknown shape
    │   ├── TranscriptError             a file cannot be read as a transcript
    │   └── ConfigError                 a key or value of the configuration is wrong
    ├── PlanError
    │   ├── StalePlanError              the heap changed since the plan was made
    │   └── ShortfallError              the target cannot be met without breaking a promise
    ├── PluginError                     a strategy plugin raised, or returned an invalid result
    ├── VocabularyError                 the shipped token vocabulary is missing or damaged
    ├── SummarizerError                 a summarizer failed, timed out, or made the text longer
    ├── StoreError
    │   ├── StoreBusyError              another process holds the store; try again
    │   ├── StoreDamagedError           the stored bytes are not what was written
    │   ├── StoreVersionError           written by a newer ctxgc
    │   └── UnknownHandleError          no stashed segment has this handle
    ├── CheckpointError                 a checkpoint cannot be read, or does not verify
    ├── SessionBusyError                a session was called by a plugin that it is waiting for
    ├── TranscriptBusyError             another process is writing a transcript; it was left alone
    ├── ClientError                     the chat client cannot do what was asked
    ├── PeerError                       another library, measured in the lab, is missing or failed
    ├── JudgeModelError                 the language model that judges is missing or failed
    └── ContextOverflowError            what must stay does not fit the context window

Each carries a stable `code`, a `hint` (what to do next) and `details` (data for programs).
"""

from __future__ import annotations

from typing import Any, ClassVar


class CtxgcError(Exception):
    """Base of all errors; `to_dict()` gives the form that interfaces send to their callers."""

    code: ClassVar[str] = "ctxgc_error"

    def __init__(self, message: str, *, hint: str = "", **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details: dict[str, Any] = details

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.hint, self.details)

    def to_dict(self) -> dict[str, Any]:
        """Return `{"error": {"code", "message", "hint", "details"}}`."""
        return {
            "error": {
                "code": self.code,
                "message": self.message,
                "hint": self.hint,
                "details": self.details,
            }
        }


def _rebuild(
    kind: type[CtxgcError], message: str, hint: str, details: dict[str, Any]
) -> CtxgcError:
    return kind(message, hint=hint, **details)


class InputError(CtxgcError, ValueError):
    """An argument cannot be used; nothing was changed."""

    code = "invalid_input"


class SegmentError(InputError):
    """A field of a segment is wrong; `details["field"]` names it."""

    code = "invalid_segment"


class DuplicateSegmentError(InputError):
    """The segment id belongs to a segment with another text."""

    code = "duplicate_segment"


class UnknownSegmentError(InputError):
    """No segment has this id."""

    code = "unknown_segment"


class MessageError(InputError):
    """A provider message has a shape that its format does not allow."""

    code = "invalid_message"


class TranscriptError(InputError):
    """A file is not a transcript, or cannot be read; `details["path"]` names it."""

    code = "unreadable_transcript"


class ConfigError(InputError):
    """A key or a value of the configuration is wrong; the hint names the nearest known key."""

    code = "invalid_config"


class PlanError(CtxgcError):
    """A plan cannot be made or applied."""

    code = "plan_failed"


class StalePlanError(PlanError):
    """The heap changed since the plan was made; plan again."""

    code = "stale_plan"


class ShortfallError(PlanError):
    """The target cannot be met without breaking a promise; `details["tokens_short"]` says by how much."""

    code = "shortfall"


class PluginError(CtxgcError):
    """A strategy plugin raised, or returned an invalid result; the history is untouched."""

    code = "plugin_failed"


class VocabularyError(CtxgcError):
    """The token vocabulary that ships with ctxgc is missing, damaged or cannot be loaded."""

    code = "vocabulary_damaged"


class SummarizerError(CtxgcError):
    """A summarizer failed, timed out, returned nothing, or made the text longer."""

    code = "summarizer_failed"


class StoreError(CtxgcError):
    """A store could not do what was asked; what it held before is still there."""

    code = "store_failed"


class StoreBusyError(StoreError):
    """Another process holds the store; the call may be repeated."""

    code = "store_busy"


class StoreDamagedError(StoreError):
    """The stored bytes are not what was written; the damaged file was set aside."""

    code = "store_damaged"


class StoreVersionError(StoreError):
    """The store was written by a newer ctxgc and was left alone."""

    code = "store_too_new"


class UnknownHandleError(StoreError):
    """No stashed segment has this handle."""

    code = "unknown_handle"


class CheckpointError(CtxgcError):
    """A checkpoint is missing, damaged, or does not verify."""

    code = "checkpoint_failed"


class SessionBusyError(CtxgcError):
    """A strategy or summarizer tried to change the session that is waiting for it; nothing was changed."""

    code = "session_busy"


class TranscriptBusyError(CtxgcError):
    """A transcript is being written by its agent or another process; it was left alone."""

    code = "transcript_busy"


class ClientError(CtxgcError):
    """The chat client is not connected, lacks a package, or got an unusable answer."""

    code = "client_failed"


class PeerError(CtxgcError):
    """A library that the lab measures is not installed, crashed, hung, or gave an invalid answer."""

    code = "peer_failed"


class JudgeModelError(CtxgcError):
    """The language model that judges in the lab is not installed, or did not do what it was asked."""

    code = "judge_model_failed"


class ContextOverflowError(CtxgcError):
    """What must stay does not fit the context window; `details` names the parts and their tokens."""

    code = "context_overflow"
