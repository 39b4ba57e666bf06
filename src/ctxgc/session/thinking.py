"""Bound thinking: a model may refuse thinking once other messages stand in front of it than when it was made.

A view changes more than once, and what was taken out comes back. So it is remembered which history each
thinking message was made behind, and in front of no other one it is shown again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b

from ctxgc.core import Message, common_prefix
from ctxgc.invariants import first_difference
from ctxgc.session.view import digest
from ctxgc.wire import strip_bound_thinking


class BoundThinking:
    """Knows the history that the thinking of each message was made behind, as a digest."""

    def __init__(self) -> None:
        self.behind: dict[str, str] = {}
        self._messages: list[Message] = []
        self._digests: list[bytes] = []

    def note(self, message: Message, before: Sequence[Message]) -> None:
        """Remember what stands in front of a message that comes in, if it thinks."""
        if _thinks(message):
            self.behind[message.message_id] = self._digest(before).hex()

    def strip(self, now: Sequence[Message], new: Sequence[Message]) -> list[Message]:
        """Return a new history without the thinking that was made behind another one.

        What is in front of the first difference to the history of now is taken as it is.
        """
        kept = list(new[: first_difference(now, new)])
        last = self._digest(kept)
        for message in new[len(kept) :]:
            fits = not _thinks(message) or self.behind.get(message.message_id) == last.hex()
            for shown in [message] if fits else strip_bound_thinking([message], 0):
                kept.append(shown)
                last = _next(last, shown)
        return self._with_whole_turn(kept)

    def _with_whole_turn(self, messages: list[Message]) -> list[Message]:
        """Return a history whose last turn of the agent has all of its thinking, or none.

        Messages of the agent that stand side by side are one turn to the provider.
        """
        end = max((n for n, m in enumerate(messages, 1) if m.role == "assistant"), default=0)
        start = end
        while start and messages[start - 1].role == "assistant":
            start -= 1
        lost = (m.message_id in self.behind and not _thinks(m) for m in messages[start:end])
        return strip_bound_thinking(messages, start) if any(lost) else messages

    def to_doc(self, message_id: str) -> dict[str, str]:
        """Return what is stored beside a message, as JSON values."""
        behind = self.behind.get(message_id)
        return {} if behind is None else {"behind": behind}

    def restate(self, docs: Mapping[str, Mapping[str, str]]) -> None:
        """Know what is stored beside messages."""
        self.behind = {key: doc["behind"] for key, doc in docs.items() if "behind" in doc}

    def _digest(self, messages: Sequence[Message]) -> bytes:
        """Return what tells a history from others; only what changed since the last one is read."""
        known = common_prefix(self._messages, messages)
        del self._messages[known:], self._digests[known:]
        for message in messages[known:]:
            self._digests.append(_next(self._digests[-1] if self._digests else b"", message))
            self._messages.append(message)
        return self._digests[-1] if self._digests else b""


def _next(before: bytes, message: Message) -> bytes:
    """Return the digest of a history that goes on with a message."""
    return blake2b(before + digest(message), digest_size=16).digest()


def _thinks(message: Message) -> bool:
    return any(part.kind == "thinking" for part in message.parts)
