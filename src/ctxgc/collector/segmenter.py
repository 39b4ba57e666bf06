"""Segmenter: from messages to segments, one for each part, with what its tool call says about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from ctxgc.core import (
    SECRET_TAG,
    ContextSegment,
    Heap,
    Message,
    Part,
    Policy,
    SegmentType,
    Source,
    Trust,
    find_secrets,
    utc_now,
)
from ctxgc.tokens import TokenCounter, part_tokens
from ctxgc.wire import ToolUse, understand

_TRUST: dict[str, Trust] = {
    "system": "system",
    "user": "user",
    "assistant": "agent",
    "tool": "tool",
}
_EPHEMERAL_KINDS = ("tool_call", "tool_result", "thinking")


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """What an edit does to the segments of a message.

    `ids` are those of the edited message, `made` the stand-ins among them, `dropped` those that leave
    without one.
    """

    ids: tuple[str, ...]
    made: tuple[ContextSegment, ...]
    dropped: tuple[str, ...]


class Segmenter:
    """Takes messages in order and keeps their segments in a heap.

    A tool result is bound to its call: the nearest earlier call with its id that has no answer yet,
    since some providers use an id again in a later turn.
    """

    def __init__(
        self,
        counter: TokenCounter,
        heap: Heap | None = None,
        clock: Callable[[], datetime] = utc_now,
        *,
        marks_secrets: bool = False,
    ) -> None:
        self.heap = heap if heap is not None else Heap(counter.count)
        self.marks_secrets = marks_secrets
        """Whether segments with likely keys get the tags `secret:RULE`."""
        self._counter = counter
        self._clock = clock
        self._open: dict[str, tuple[str, ToolUse]] = {}
        self._by_message: dict[str, tuple[str, ...]] = {}
        self.numbered = 0
        """How many segments were numbered so far."""

    @property
    def now(self) -> datetime:
        """The present time by this segmenter's clock."""
        return self._clock()

    def segment_ids(self, message_id: str) -> tuple[str, ...]:
        """Return the segments of a message, one for each of its parts."""
        return self._by_message.get(message_id, ())

    def take(self, message: Message) -> tuple[str, ...]:
        """Put a message's parts into the heap and return their segment ids."""
        return self.enter(message, self.prepare(message))

    def prepare(self, message: Message) -> list[ContextSegment]:
        """Return segments for a message's parts; the heap does not hold them yet."""
        now = self._clock()
        return [self._segment(message, part, now) for part in message.parts]

    def enter(self, message: Message, segments: Sequence[ContextSegment]) -> tuple[str, ...]:
        """Put the prepared segments of a message into the heap and return their ids."""
        ids = tuple(self.heap.add_all(segments))
        self._by_message[message.message_id] = ids
        return ids

    def exchange(self, before: Message, after: Message, ids: Sequence[str]) -> Exchange:
        """Return how the segments of a message change when it is edited; the heap stays as it is.

        Args:
            before: the message as it came in.
            after: the message as it shall be shown.
            ids: the segments of `before`, one for each of its parts.
        """
        old = list(zip(ids, before.parts, strict=True))
        final: list[str | None] = [_take_same(old, part, n) for n, part in enumerate(after.parts)]
        made: list[ContextSegment] = []
        for place, part in enumerate(after.parts):
            if final[place] is None:
                made.append(self._stand_in(after, part, _take_alike(old, part)))
                final[place] = made[-1].segment_id
        return Exchange(
            ids=tuple(i for i in final if i is not None),
            made=tuple(made),
            dropped=tuple(segment_id for segment_id, _ in old),
        )

    def carry_out(self, message_id: str, exchange: Exchange) -> None:
        """Make an exchange real."""
        for stand_in in exchange.made:
            self.heap.replace(str(stand_in.derived_from), stand_in)
        for segment_id in exchange.dropped:
            self.heap.stash(segment_id)
        self.adopt(message_id, exchange.ids)

    def _stand_in(self, message: Message, part: Part, original: str) -> ContextSegment:
        self.numbered += 1
        known = self.heap.get(original)
        return replace(
            known,
            segment_id=f"s-{self.numbered}",
            text=part.text,
            tokens=part_tokens(part, self._counter),
            tier="working",
            derived_from=original,
            references=(),
            tags=(
                *(tag for tag in known.tags if not tag.startswith(SECRET_TAG)),
                *self._secret_tags(part),
            ),
            access=None,
            command=None,
            failed=False,
            superseded_by=None,
            superseded_how=None,
            created_step=0,
            last_touched_step=0,
            touches=0,
            message_id=message.message_id,
        )

    def reopen(self, call: ContextSegment) -> None:
        """Let a result that comes after a restart find its call."""
        if call.call_id is not None and call.bond_id is not None:
            self._open[call.call_id] = (call.bond_id, understand(call.name or "", call.text))

    def forget(self, message_id: str) -> None:
        """Drop the connection between a message that left and its segments."""
        self._by_message.pop(message_id, None)

    def adopt(self, message_id: str, segment_ids: tuple[str, ...]) -> None:
        """Connect a message with segments that the heap holds already."""
        self._by_message[message_id] = segment_ids

    def _segment(self, message: Message, part: Part, now: datetime) -> ContextSegment:
        self.numbered += 1
        bond, use = self._bond(message, part)
        return ContextSegment(
            segment_id=f"s-{self.numbered}",
            text=part.text,
            type=_type_of(message, part, use),
            role=message.role,
            created_at=now,
            tokens=part_tokens(part, self._counter),
            message_id=message.message_id,
            part=part.kind,
            call_id=part.call_id if bond is not None else None,
            bond_id=bond,
            trust=_TRUST[message.role] if part.kind != "tool_result" else "tool",
            source=_source_of(message),
            policy=_policy_of(message, part),
            failed=part.is_error or use.failed(part.text) if part.kind == "tool_result" else False,
            file_path=use.path,
            line_range=use.line_range,
            access=use.access if part.kind == "tool_result" else None,
            command=use.command if part.kind == "tool_result" else None,
            name=part.name,
            tags=self._secret_tags(part),
        )

    def _secret_tags(self, part: Part) -> tuple[str, ...]:
        if not self.marks_secrets:
            return ()
        return tuple(dict.fromkeys(f"{SECRET_TAG}{s.rule}" for s in find_secrets(part.text)))

    def _bond(self, message: Message, part: Part) -> tuple[str | None, ToolUse]:
        """Return the bond of a part and what its tool call is about."""
        if part.call_id is None or part.server_side:
            return None, ToolUse()
        if part.kind == "tool_call":
            use = understand(part.name or "", part.text)
            self._open[part.call_id] = (message.message_id, use)
            return message.message_id, use
        if part.kind == "tool_result":
            return self._open.pop(part.call_id, (None, ToolUse()))
        return None, ToolUse()


def _type_of(message: Message, part: Part, use: ToolUse) -> SegmentType:
    if message.origin == "gc_summary":
        return "summary"
    if part.kind != "tool_result":
        return "message"
    return "code" if use.access == "read" else "log"


def _source_of(message: Message) -> Source:
    if message.role == "system":
        return "system"
    return "conversation" if message.origin == "conversation" else "enrichment"


def _policy_of(message: Message, part: Part) -> Policy:
    if message.role == "system":
        return "locked"
    if message.origin == "gc_summary":
        return "preservable"
    return "ephemeral" if part.kind in _EPHEMERAL_KINDS else "partial"


def _take_same(old: list[tuple[str, Part]], part: Part, place: int) -> str | None:
    """Take out the segment of an equal part, that of the same place first."""
    equal = [n for n, (_, known) in enumerate(old) if _says(known) == _says(part)]
    if not equal:
        return None
    return old.pop(min(equal, key=lambda n: (old[n][1].path != part.path, abs(n - place))))[0]


def _take_alike(old: list[tuple[str, Part]], part: Part) -> str:
    """Take the segment that a part replaces: one of its kind and call, else the first."""
    alike = (n for n, (_, known) in enumerate(old) if _says(known)[:2] == _says(part)[:2])
    return old.pop(next(alike, 0))[0]


def _says(part: Part) -> tuple[str, str | None, str]:
    return (part.kind, part.call_id, part.text)
