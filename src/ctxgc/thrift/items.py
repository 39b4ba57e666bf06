"""Items: the tool results and to-do lists of a view, with what thrift remembers about each of them."""

from __future__ import annotations

from collections.abc import Iterable

from ctxgc.core.text import Text
from ctxgc.thrift.census import Holding, partly, whole
from ctxgc.thrift.kinds import Call, Kind

_PLAN_LIFE = 8


class Item:
    """One tool result, or the call that wrote a to-do list.

    `born` is the first request that carries it. `kept` is None while all of it is shown, else the
    lines that are, beside `extra` other characters. `stubbed_at` is the request before which it
    was made a stub; from then on it stays as it is. Before the request `rests_until` only news speak
    against it, and `rests_since` counts those that were heard. Before `sure_until` only what is heard of its
    file changes what it would save, and `sure_since` counts that.
    """

    __slots__ = (
        "born", "call", "chars", "extra", "kept", "kind", "listed", "message_id", "part",
        "planned_at", "rent", "rests_since", "rests_until", "same_at", "same_elsewhere", "saving",
        "source", "stubbed_at", "sure_since", "sure_until", "text", "why_planned",
    )  # fmt: skip

    def __init__(
        self, message_id: str, part: int, text: Text, *, kind: Kind, call: Call, born: int
    ) -> None:
        self.message_id = message_id
        self.part = part
        self.source = source(message_id, part)
        self.text = text
        self.kind = kind
        self.call = call
        self.born = born
        self.kept: tuple[int, ...] | None = None
        self.listed: tuple[str, ...] = ()
        self.chars = sum(map(text.cost, range(len(text.lines))))
        self.extra = 0
        self.stubbed_at: int | None = None
        self.rent = 0.0
        self.rests_until = 0
        self.rests_since = 0
        self.sure_until = 0
        self.sure_since = 0
        self.planned_at = 0
        self.saving = 0.0
        self.why_planned = ""
        self.same_at = -1
        self.same_elsewhere = False

    @property
    def shown(self) -> Iterable[int]:
        """The lines that are shown now."""
        return range(len(self.text.lines)) if self.kept is None else self.kept

    @property
    def plan_until(self) -> int:
        """The request before which what it would save is looked at again."""
        return self.planned_at + max(_PLAN_LIFE, self.planned_at - self.born)

    def show(self, kept: Iterable[int], listed: Iterable[str], extra: int) -> None:
        """Show only some lines from now on, beside some bare names."""
        self.kept, self.listed, self.extra = tuple(kept), tuple(listed), extra
        self.chars = sum(map(self.text.cost, self.kept))

    def rest(self, until: int, since: int) -> None:
        """Let nothing but news speak against the item before a request."""
        self.rests_until, self.rests_since = until, since

    def holding(self) -> Holding:
        """Return what the item holds now."""
        return whole(self.text) if self.kept is None else partly(self.text, self.kept, self.listed)


def source(message_id: str, part: int) -> str:
    """Return a name for a part of a message."""
    return f"{message_id}/{part}"
