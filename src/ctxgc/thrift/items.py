"""Items: the tool results and to-do lists of a view, with what thrift remembers about each of them."""

from __future__ import annotations

from collections.abc import Iterable

from ctxgc.core.text import Text
from ctxgc.thrift.census import Holding, partly, whole
from ctxgc.thrift.kinds import Call, Kind

DEAF = 1 << 60
"""So much news an item has heard that none can let it die sooner."""
_PLAN_LIFE = 8


class Item:
    """One tool result, or the call that wrote a to-do list.

    `born` is the first request that carries it. `kept` is None while all of it is shown, else the
    lines that are, beside `extra` other characters. `stubbed_at` is the request before which it
    was made a stub; from then on it stays as it is. `saving` are the tokens that a stub would save now,
    none while it may not leave. Before the request `looks_at` that stays so unless the item is woken, or
    there is more news than it has `heard`.
    """

    __slots__ = (
        "born", "call", "chars", "elsewhere", "extra", "heard", "kept", "kind", "listed", "looks_at",
        "message_id", "part", "place", "planned", "planned_at", "rent", "saving", "source",
        "stubbed_at", "text", "why_planned",
    )  # fmt: skip

    def __init__(
        self, message_id: str, part: int, text: Text, *, kind: Kind, call: Call, born: int
    ) -> None:
        self.place = 0
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
        self.saving = 0.0
        self.looks_at = 0
        self.heard = DEAF
        self.planned_at = 0
        self.planned = 0.0
        self.why_planned = ""
        self.elsewhere: bool | None = None

    @property
    def shown(self) -> Iterable[int]:
        """The lines that are shown now."""
        return range(len(self.text.lines)) if self.kept is None else self.kept

    @property
    def plan_until(self) -> int:
        """The request before which what a stub would save is planned again."""
        return self.planned_at + max(_PLAN_LIFE, self.planned_at - self.born)

    def show(self, kept: Iterable[int], listed: Iterable[str], extra: int) -> None:
        """Show only some lines from now on, beside some bare names."""
        self.kept, self.listed, self.extra = tuple(kept), tuple(listed), extra
        self.chars = sum(map(self.text.cost, self.kept))
        self.elsewhere = None

    def wake(self) -> None:
        """Let the item be looked at before the next request."""
        self.looks_at = 0

    def holding(self) -> Holding:
        """Return what the item holds now."""
        return whole(self.text) if self.kept is None else partly(self.text, self.kept, self.listed)


def source(message_id: str, part: int) -> str:
    """Return a name for a part of a message."""
    return f"{message_id}/{part}"
