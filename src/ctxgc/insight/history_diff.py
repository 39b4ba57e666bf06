"""What left, came and changed between two histories, part by part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal, NamedTuple

from ctxgc.core import Message
from ctxgc.tokens import counter_for


class HistoryPart(NamedTuple):
    """One part of a message; `key` is the same in two histories that both hold it."""

    key: tuple[str, str, int]
    what: str
    text: str
    tokens: int


class ComparedHistory(NamedTuple):
    """A history to compare, under the name that it was asked for by."""

    name: str
    messages: int
    parts: list[HistoryPart]

    @property
    def tokens(self) -> int:
        """The tokens of all its parts."""
        return sum(part.tokens for part in self.parts)


class HistoryDifference(NamedTuple):
    """One difference: what happened, to what, and its tokens before and after."""

    change: Literal["left", "came", "changed"]
    part: str
    tokens_before: int
    tokens_after: int
    text: str


def compared_history(name: str, messages: Iterable[Message | None]) -> ComparedHistory:
    """Return the parts of messages, in order, as `history_changes` compares them."""
    count = counter_for(None).count
    known = [message for message in messages if message is not None]
    seen: Counter[tuple[str, str]] = Counter()
    parts = []
    for message in known:
        for part in message.parts:
            # A call and its result are known by the id of the call, everything else by its text.
            named = part.call_id if part.kind in ("tool_call", "tool_result") else None
            key = (f"{message.role} {part.kind}", named or part.text)
            what = part.kind.replace("_", " ") if part.kind != "text" else message.role
            label = f"{what} {part.name}" if part.name else what
            parts.append(HistoryPart((*key, seen[key]), label, part.text, count(part.text)))
            seen[key] += 1
    return ComparedHistory(name, len(known), parts)


def history_changes(before: ComparedHistory, after: ComparedHistory) -> list[HistoryDifference]:
    """Return what is in one history only, or has another text in the other: in the first's order first."""
    unmatched = {part.key: part for part in after.parts}
    found = []
    for part in before.parts:
        other = unmatched.pop(part.key, None)
        if other is None:
            found.append(HistoryDifference("left", part.what, part.tokens, 0, part.text))
        elif other.text != part.text:
            found.append(
                HistoryDifference("changed", other.what, part.tokens, other.tokens, other.text)
            )
    came = (HistoryDifference("came", x.what, 0, x.tokens, x.text) for x in unmatched.values())
    return [*found, *came]
