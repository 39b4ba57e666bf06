"""Every error that ctxgc raises, in one tree.

    CtxgcError
    ├── InputError (ValueError)        what was handed in cannot be used; nothing was changed
    │   ├── SegmentError                a field of a segment is wrong
    │   ├── DuplicateSegmentError       this id is taken by another text
    │   ├── UnknownSegmentError         no segment has this id
    │   ├── MessageError                a provider message has an unknown shape
    │   ├── TranscriptError             nothing of a file can be read as a transcript
    │   └── ConfigError                 a key or value of the configuration is wrong
    ├── PlanError
    │   ├── StalePlanError              the heap changed since the plan was made
    │   └── ShortfallError              the target cannot be met without breaking a promise
    ├── PluginError                     a strategy plugin raised, or returned what no plugin may
    ├── VocabularyError                 the shipped token vocabulary is missing or damaged
    ├── SummarizerError                 a summarizer failed, timed out, or made the text longer
    ├── StoreError
    │   ├── StoreBusyError              somebody else holds the store; try again
    │   ├── StoreDamagedError           the stored bytes are not what was written
    │   ├── StoreVersionError           written by a newer ctxgc
    │   └── UnknownHandleError          no stashed segment answers to this handle
    ├── CheckpointError                 a checkpoint cannot be read, or does not verify
    ├── SessionBusyError                a session was called again by what it waits for
    ├── TranscriptBusyError             somebody is writing a transcript; it was left alone
    ├── ClientError                     the chat client cannot do what it was asked to
    ├── PeerError                       another library, measured in the lab, is missing or failed
    └── ContextOverflowError            what must stay does not fit the context window

Each carries a stable `code`, a `hint` (what to do next) and `details` (data for programs).
"""

from __future__ import annotations

from typing import Any, ClassVar


class CtxgcError(Exception):
    """Base of all errors; `to_dict()` gives the form that the doors send to their callers."""

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
    """What was handed in cannot be used; nothing was changed."""

    code = "invalid_input"


class SegmentError(InputError):
    """A field of a segment is wrong; `details["field"]` names it."""

    code = "invalid_segment"


class DuplicateSegmentError(InputError):
    """The segment id is taken by a segment with another text."""

    code = "duplicate_segment"


class UnknownSegmentError(InputError):
    """No segment has this id."""

    code = "unknown_segment"


class MessageError(InputError):
    """A provider message has a shape that no rule of its format allows."""

    code = "invalid_message"


class TranscriptError(InputError):
    """A file is no transcript, or nothing of it can be read; `details["path"]` names it."""

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
    """A strategy plugin raised, or returned what no plugin may return; the history is untouched."""

    code = "plugin_failed"


class VocabularyError(CtxgcError):
    """The token vocabulary that ships with ctxgc is missing, damaged or cannot be loaded."""

    code = "vocabulary_damaged"


class SummarizerError(CtxgcError):
    """A summarizer failed, took too long, gave nothing, or gave more than it got."""

    code = "summarizer_failed"


class StoreError(CtxgcError):
    """A store could not do what was asked; what it held before, it still holds."""

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
    """No stashed segment answers to this handle."""

    code = "unknown_handle"


class CheckpointError(CtxgcError):
    """A checkpoint is missing, damaged, or does not verify."""

    code = "checkpoint_failed"


class SessionBusyError(CtxgcError):
    """A session was to be changed by a strategy or summarizer that it waits for; nothing was changed."""

    code = "session_busy"


class TranscriptBusyError(CtxgcError):
    """A transcript is being written by its agent, or by somebody else; it was left alone."""

    code = "transcript_busy"


class ClientError(CtxgcError):
    """The chat client is not connected, lacks a package, or got an answer that it cannot use."""

    code = "client_failed"


class PeerError(CtxgcError):
    """A library that the lab measures is not installed, crashed, hung, or answered nonsense."""

    code = "peer_failed"


class ContextOverflowError(CtxgcError):
    """What must stay does not fit the context window; `details` names the parts and their tokens."""

    code = "context_overflow"
