"""The open items: results that are no stubs yet. What concerns a view wakes it, and nothing else does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from ctxgc.core import Text
from ctxgc.strategies.mark_sweep.calls import CallEffect, Kind
from ctxgc.strategies.mark_sweep.presets import Preset

# -- The census: in how many messages of the view each name, word and line stands


class Holding:
    """What one message holds verbatim, and which names it lists bare."""

    __slots__ = ("keys", "listed", "names", "words")

    def __init__(
        self,
        names: frozenset[str],
        words: frozenset[str],
        keys: frozenset[str],
        listed: frozenset[str] = frozenset(),
    ) -> None:
        self.names = names
        self.words = words
        self.keys = keys
        self.listed = listed


class Census:
    """Counts holders; a message that changes leaves and enters again."""

    def __init__(self) -> None:
        self.names: Counter[str] = Counter()
        self.words: Counter[str] = Counter()
        self.keys: Counter[str] = Counter()
        self.listed: Counter[str] = Counter()
        self.seen: Counter[str] = Counter()
        """How many messages ever held a name or a word, those that left included."""

    def enter(self, holding: Holding, *, new: bool) -> None:
        """Count what a message holds; `new` when it came in from the host."""
        self.names.update(holding.names)
        self.words.update(holding.words)
        self.keys.update(holding.keys)
        self.listed.update(holding.listed)
        if new:
            self.seen.update(holding.names)
            self.seen.update(holding.words)

    def leave(self, holding: Holding) -> None:
        """Count it no longer."""
        _subtract(self.names, holding.names)
        _subtract(self.words, holding.words)
        _subtract(self.keys, holding.keys)
        _subtract(self.listed, holding.listed)


def whole(text: Text) -> Holding:
    """Return what a message holds that shows all of a text."""
    return Holding(text.names, text.words, text.line_keys)


def partly(text: Text, kept: Iterable[int], listed: Iterable[str] = ()) -> Holding:
    """Return what a message holds of which only some lines stay."""
    lines = list(kept)
    keys = {text.keys[line] for line in lines}
    keys.discard("")
    return Holding(
        frozenset[str]().union(*(text.line_names[line] for line in lines)),
        frozenset[str]().union(*(text.line_words[line] for line in lines)),
        frozenset(keys),
        frozenset(listed),
    )


def _subtract(counts: Counter[str], keys: frozenset[str]) -> None:
    for key in keys:
        counts[key] -= 1
        if counts[key] <= 0:
            del counts[key]


# -- Items: the tool results and to-do lists of a view


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
        self, message_id: str, part: int, text: Text, *, kind: Kind, call: CallEffect, born: int
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


# -- Evidence of death: which results may leave before the next request, and by what right


ELSEWHERE = 0.7
_NEVER = -1_000

WHY: Mapping[str, str] = {
    "edited": "file edited since",
    "elsewhere": "shown elsewhere",
    "idle": "idle",
    "view": "idle",
    "shell_view": "seen",
    "shell": "seen",
    "search": "seen",
    "paths": "seen",
    "edit": "seen",
    "todo": "newer list since",
    "other": "seen",
}


class Clues:
    """When files were last named or edited, and when the work was last checked or steered."""

    def __init__(self) -> None:
        self._named: dict[str, int] = {}
        self._edited: dict[str, int] = {}
        self._checked = _NEVER
        self._steered = _NEVER
        self.news = 0
        """How often something was heard that may let a view die sooner."""
        self._lists: dict[str, dict[str, None]] = {}

    def call(self, call: CallEffect, request: int) -> None:
        """Take in a tool call that the answer to a request made."""
        self._named.update(dict.fromkeys(call.named, request))
        self._edited.update(dict.fromkeys(call.edited, request))
        if call.checks:
            self._checked = request
        if call.checks or call.edited:
            self.news += 1

    def touch(self, path: str, request: int) -> None:
        """A file was as good as named: a new result stands on an old view of it."""
        self._named[path] = request

    def write_list(self, tool: str, source: str) -> None:
        """Take in a to-do list that a tool wrote."""
        self._lists.setdefault(tool, {}).setdefault(source)

    def drop_list(self, source: str) -> None:
        """A to-do list was not written after all, or is no longer shown."""
        for lists in self._lists.values():
            lists.pop(source, None)

    def is_replaced(self, item: Item) -> bool:
        """Tell whether the tool of a to-do list has written a newer one."""
        lists = self._lists.get(item.call.tool, {})
        return item.source in lists and next(reversed(lists)) != item.source

    def user(self, request: int) -> None:
        """Take in a message of the user."""
        self._steered = request
        self.news += 1

    def idle(self, item: Item, request: int) -> int:
        """Return for how many requests nobody named a view's file, at most since it was first sent."""
        named = self._named.get(item.call.path, _NEVER)
        return min(request - item.born, request - named - 1)

    def edited_since(self, item: Item) -> bool:
        """Tell whether a view's file was edited after it was viewed."""
        return self._edited.get(item.call.path, _NEVER) >= item.born

    def bonus(self, item: Item, how: Preset) -> int:
        """Return the idle requests that a check or a word of the user since is worth."""
        last = max(self._named.get(item.call.path, _NEVER), item.born - 1)
        checked = how.after_check if self._checked > last else 0
        return checked + (how.after_user if self._steered > last else 0)


def evidence(
    item: Item, clues: Clues, census: Census, how: Preset, request: int
) -> tuple[str | None, int]:
    """Return why an item may leave (None while it may not) and for how long it was idle."""
    age = request - item.born
    if age < 1 or (item.kind == "todo" and not clues.is_replaced(item)):
        return None, 0
    if item.kind != "view":
        return item.kind, age
    idle = clues.idle(item, request)
    if clues.edited_since(item):
        return ("edited" if idle >= 1 else None), 0
    if _stands_elsewhere(item, census):
        return "elsewhere", idle
    counted = idle + (clues.bonus(item, how) if idle >= how.bonus_from else 0)
    return ("idle" if counted >= how.hold else None), counted


def next_look(
    item: Item, why: str | None, clues: Clues, how: Preset, request: int
) -> tuple[int, int]:
    """Return before which request an item that nobody wakes is as it is now, and what it has heard."""
    if item.kind == "todo" or request <= item.born:
        return request + 1, DEAF
    if why is not None:
        return item.plan_until, DEAF
    if clues.edited_since(item):
        return request + 1, DEAF
    idle = clues.idle(item, request)
    if idle < how.bonus_from:
        return request + min(how.hold, how.bonus_from) - idle, DEAF
    return request + how.hold - idle - clues.bonus(item, how), clues.news


def overdue(item: Item, clues: Clues, how: Preset, request: int) -> int:
    """Return for how many requests an item could have left already, as far as its age tells."""
    if item.kind == "todo":
        return 0
    last = how.hold if item.kind == "view" else 1
    idle = clues.idle(item, request) if item.kind == "view" else request - item.born
    return max(0, idle - last)


def haunted(
    item: Item, why: str | None, idle: int, how: Preset, *, delay: int, request: int
) -> tuple[str | None, int]:
    """Return the evidence against an item whose like was recalled after it had left.

    It is held `delay` requests longer, and no class of it leaves young.
    """
    is_due = idle >= how.hold + delay if why == "idle" else request - item.born > delay
    return (why if is_due else None), max(0, idle - delay)


def _stands_elsewhere(item: Item, census: Census) -> bool:
    """Tell whether most lines of a view stand in other messages too."""
    if item.elsewhere is None:
        keys = [item.text.keys[line] for line in item.shown if item.text.keys[line]]
        others = sum(1 for key in keys if census.keys[key] > 1)
        item.elsewhere = bool(keys) and others >= ELSEWHERE * len(keys)
    return item.elsewhere


# -- The open items: results that are not stubs yet


Index = dict[str, dict[str, Item]]


class Opened:
    """The items that may still leave, in the order of the view."""

    def __init__(self) -> None:
        self._items: dict[str, Item] = {}
        self._in_order = True
        self._by_path: Index = {}
        self._by_key: Index = {}

    def __contains__(self, item: Item) -> bool:
        return item.source in self._items

    def __iter__(self) -> Iterator[Item]:
        return reversed(self.newest_first())

    def newest_first(self) -> list[Item]:
        """Return the items, the last one of the view first."""
        if not self._in_order:
            found = sorted(self._items.values(), key=_standing)
            self._items, self._in_order = {item.source: item for item in found}, True
        return list(reversed(self._items.values()))

    def add(self, item: Item) -> None:
        """Take in an item."""
        if self._items:
            last = next(reversed(self._items.values()))
            self._in_order = self._in_order and _standing(last) < _standing(item)
        self._items[item.source] = item
        if item.kind == "view":
            _put(self._by_path, (item.call.path,), item)
            _put(self._by_key, item.text.line_keys, item)

    def drop(self, item: Item) -> None:
        """Let go of an item, if it is there."""
        if self._items.pop(item.source, None) is not None and item.kind == "view":
            _take(self._by_path, (item.call.path,), item)
            _take(self._by_key, item.text.line_keys, item)

    def hear(self, paths: Iterable[str]) -> None:
        """Wake the views of files that were named, edited or touched."""
        for path in paths:
            for item in self._by_path.get(path, {}).values():
                item.wake()

    def see(self, keys: frozenset[str]) -> None:
        """Wake the views that show a line which came or went in some message."""
        for key in self._by_key.keys() & keys:
            for item in self._by_key[key].values():
                item.wake()
                item.elsewhere = None


def _standing(item: Item) -> tuple[int, int]:
    return item.place, item.part


def _put(index: Index, keys: Iterable[str], item: Item) -> None:
    for key in keys:
        index.setdefault(key, {})[item.source] = item


def _take(index: Index, keys: Iterable[str], item: Item) -> None:
    for key in keys:
        del index[key][item.source]
        if not index[key]:
            del index[key]
