"""The reader: what is known about each tool result of a view, kept in step with what is shown.

An `Item` is a result, or a to-do list; `Opened` are those that are not stubs yet. What concerns an item wakes
it, and nothing else does: a request costs what changed, not what there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from weakref import WeakValueDictionary

from ctxgc.collector.calls import (
    CallEffect,
    Kind,
    kind_of_result,
    may_leave,
    read_call,
    was_made,
)
from ctxgc.collector.liveness import DEAF, Clues
from ctxgc.collector.worth import Census, Copies, Holding, partly, whole
from ctxgc.core import Message, Part, Text, is_tombstone
from ctxgc.wire import PartTexts

# -- Items: the tool results and to-do lists of a view


_PLAN_LIFE = 8


class Item:
    """One tool result, or the call that wrote a to-do list.

    `born` is the first request that carries it. `kept` is None while all of it is shown, else the
    lines that are, beside `extra` other characters. `stubbed_at` is the request before which it
    was made a stub; from then on it stays as it is. `saving` are the tokens that a stub would save now,
    none while it may not leave. `files` are those that it is about, and `shows_file` says that it shows
    one; `rerun_at` is the request whose answer made the same call again, 0 until then. Before the request
    `looks_at` what is noted stays so unless the item is woken, or there is more news than it has `heard`.
    """

    __slots__ = (
        "__weakref__",
        "born",
        "call",
        "chars",
        "elsewhere",
        "extra",
        "files",
        "heard",
        "kept",
        "kind",
        "listed",
        "looks_at",
        "message_id",
        "part",
        "place",
        "planned",
        "planned_at",
        "rent",
        "rerun_at",
        "saving",
        "shows_file",
        "source",
        "stubbed_at",
        "text",
        "why_planned",
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
        self.shows_file = bool(call.path)
        self.files = frozenset([call.path]) if call.path else call.named
        self.rerun_at = 0
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

    def retell(self, text: Text) -> None:
        """Say the same in another text."""
        self.text, self.elsewhere = text, None
        self.chars = sum(map(text.cost, range(len(text.lines))))

    def wake(self) -> None:
        """Let the item be looked at before the next request."""
        self.looks_at = 0

    def holding(self) -> Holding:
        """Return what the item holds now."""
        return whole(self.text) if self.kept is None else partly(self.text, self.kept, self.listed)


def source(message_id: str, part: int) -> str:
    """Return a name for a part of a message."""
    return f"{message_id}/{part}"


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
        _put(self._by_path, item.files, item)
        if item.shows_file:
            _put(self._by_key, item.text.line_keys, item)

    def drop(self, item: Item) -> None:
        """Let go of an item, if it is there."""
        if self._items.pop(item.source, None) is None:
            return
        _take(self._by_path, item.files, item)
        if item.shows_file:
            _take(self._by_key, item.text.line_keys, item)

    def hear(self, paths: Iterable[str]) -> None:
        """Wake the results about files that were named, edited or touched."""
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


# -- The reader


_SLACK = 64
_UNKNOWN = CallEffect(kind="other", gathers=True)
_REPEATABLE = frozenset({"view", "shell_view", "shell", "search"})
"""Of these it is known that the same call answers the same question again."""

Born = Callable[[str], int]
"""The first request that could carry a message."""


class Known:
    """A message as it was read: its place, what its parts hold, and the tool results among them."""

    __slots__ = ("holdings", "items", "message", "place")

    def __init__(self, message: Message, place: int) -> None:
        self.message = message
        self.place = place
        self.holdings: list[Holding] = []
        self.items: list[Item] = []

    def move(self, place: int) -> None:
        """Take note that the message stands elsewhere in the view."""
        self.place = place
        for item in self.items:
            item.place = place


class Reader:
    """Reads each message once; of a view that changed, what changed.

    `reads_lists` makes items of the calls that write to-do lists too.
    """

    def __init__(self, texts: PartTexts, *, reads_lists: bool = False) -> None:
        self._reads_lists = reads_lists
        self.census = Census()
        self.clues = Clues()
        self.copies = Copies()
        self.known: dict[str, Known] = {}
        self.open = Opened()
        self._texts = texts
        self.read = 0
        """How many messages of the view were read."""
        self._calls: dict[str, tuple[str, CallEffect]] = {}
        self._called: dict[str, tuple[str, int]] = {}
        # An item that left the view is not looked at again, and its text must not stay in memory.
        self._answers: WeakValueDictionary[tuple[str, str], Item] = WeakValueDictionary()
        self._names: dict[str, str] = {}
        self._ever: set[str] = set()

    def follow(
        self,
        view: Sequence[Message],
        request: int,
        *,
        born: Born | None = None,
        same: int = 0,
    ) -> list[Item]:
        """Read what is new in the view before a request; return the tool results that came in.

        Its first `same` messages are known to be those of the last time. A session that is read for
        the first time was at work before: `born` tells which request first carried each message.
        """
        fresh: list[Item] = []
        start = min(same, self.read)
        first = born if not self._ever else None
        for place, message in enumerate(view[start:], start):
            known = self.known.get(message.message_id)
            if known is None or known.message is not message:
                since = request if first is None else first(message.message_id)
                fresh += self._read(message, place, since)
            elif known.place != place:
                known.move(place)
        if len(self.known) > len(view):
            self._forget({message.message_id for message in view})
        self.read = len(view)
        return fresh

    def show(
        self, item: Item, kept: Iterable[int], listed: Iterable[str] = (), extra: int = 0
    ) -> None:
        """Take note that only some lines of an item are shown from now on."""
        item.show(kept, listed, extra)
        self._hold(self.known[item.message_id], item.part, item.holding())
        self.copies.narrow(item.source, item.shown)

    def retell(self, item: Item, text: str) -> None:
        """Take note that an item came in as another text."""
        self.open.drop(item)
        item.retell(Text(text))
        self.open.add(item)
        self._hold(self.known[item.message_id], item.part, item.holding())
        self.copies.forget(item.source)
        self.copies.note(item.source, item.text)

    def call_of(self, item: Item) -> tuple[Known, int] | None:
        """Return the message of the call that an item answers, and which part of it the call is."""
        call_id = self.known[item.message_id].message.parts[item.part].call_id
        message_id, part = self._called.get(call_id or "", ("", 0))
        known = self.known.get(message_id)
        return None if known is None else (known, part)

    def say(self, known: Known, part: int, text: str) -> None:
        """Take note that a part has another text from now on."""
        name, read = source(known.message.message_id, part), Text(text)
        self._hold(known, part, whole(read))
        self.copies.forget(name)
        self.copies.note(name, read)

    def settle(self, changed: Iterable[Message]) -> None:
        """Take messages for what is known about them."""
        for message in changed:
            known = self.known.get(message.message_id)
            if known is not None:
                known.message = message

    def reopen(self) -> None:
        """Look again at the results that are no stubs, those that were too small among them."""
        for item in [item for known in self.known.values() for item in known.items]:
            item.why_planned = ""
            item.wake()
            if item.stubbed_at is None and item not in self.open:
                self.open.add(item)

    def items_of(self, message_id: str) -> list[Item]:
        """Return the tool results of a message, and its to-do lists."""
        return self.known[message_id].items

    def chars_beside(self, item: Item) -> int:
        """Return the characters of the message of an item, as far as they count for its size."""
        if item.kind == "todo":
            return sum(len(part.text) for part in self.known[item.message_id].message.parts)
        return sum(part.chars + part.extra for part in self.items_of(item.message_id))

    def describe(self, name: str, request: int) -> str:
        """Return what to call a source of copies, which is as good as sent anew by that."""
        for item in self.items_of(name.rpartition("/")[0]):
            self.clues.touch(item.call.path, request - 1)
            self.open.hear((item.call.path,))
            item.born, item.rerun_at = request, 0
            item.wake()
        return self._names.get(name, "text")

    def _read(self, message: Message, place: int, request: int) -> list[Item]:
        old = self.known.pop(message.message_id, None)
        if old is not None:
            self._leave(old)
        new = message.message_id not in self._ever
        self._ever.add(message.message_id)
        known = self.known[message.message_id] = Known(message, place)
        for number, part in enumerate(message.parts):
            self._read_part(known, number, part, request, new=new)
        if message.role == "user" and new and not message.results():
            self.clues.user(request - 1)
        return [item for item in known.items if item.kind != "todo"] if new else []

    def _read_part(self, known: Known, number: int, part: Part, request: int, *, new: bool) -> None:
        text = self._texts.of(known.message.message_id, number, part)
        name = source(known.message.message_id, number)
        if part.kind == "tool_call":
            call = self._note_call(part, request, new=new)
            self._called[part.call_id or ""] = (known.message.message_id, number)
            self._names[name] = f"{part.name} call"
            if self._reads_lists and call.kind == "todo":
                self._read_list(known, number, text, call, request if new else request - 1)
        elif _may_be_stub(part):
            tool, call = self._calls.get(part.call_id or "", ("", _UNKNOWN))
            self._names[name] = f"{tool} result".lstrip()
            kind = kind_of_result(call, text.lines)
            if call.kind == "todo" and not was_made(known.message, number):
                self.clues.drop_list(source(*self._called[part.call_id or ""]))
            born = request if new else request - 1
            item = Item(known.message.message_id, number, text, kind=kind, call=call, born=born)
            self._add(known, item)
            if new:
                self._answer(item, request)
        known.holdings.append(whole(text))
        self._enter(known.holdings[-1], new=new)
        self.copies.note(name, text)

    def _note_call(self, part: Part, request: int, *, new: bool) -> CallEffect:
        call = read_call(part.name or "", part.text)
        if part.call_id is not None:
            self._calls[part.call_id] = (part.name or "", call)
        if new:
            self.clues.call(call, request - 1)
            self.open.hear(call.named | call.edited)
        return call

    def _answer(self, item: Item, request: int) -> None:
        """Take note that an older answer to the same call is out of date."""
        found = self.call_of(item) if item.call.kind in _REPEATABLE else None
        if found is None:
            return
        call = found[0].message.parts[found[1]]
        older = self._answers.get((call.name or "", call.text))
        self._answers[call.name or "", call.text] = item
        if older is not None:
            older.rerun_at = request - 1
            older.wake()

    def _read_list(
        self, known: Known, number: int, text: Text, call: CallEffect, born: int
    ) -> None:
        part = known.message.parts[number]
        item = Item(known.message.message_id, number, text, kind="todo", call=call, born=born)
        item.extra = len(part.text) - item.chars
        self.clues.write_list(call.tool, item.source)
        if may_leave(known.message, part):
            self._add(known, item)

    def _add(self, known: Known, item: Item) -> None:
        item.place = known.place
        known.items.append(item)
        self.open.add(item)

    def _hold(self, known: Known, part: int, holding: Holding) -> None:
        """Take note that a part holds something else from now on."""
        self.census.leave(known.holdings[part])
        self.open.see(known.holdings[part].keys)
        known.holdings[part] = holding
        self._enter(holding, new=False)

    def _enter(self, holding: Holding, *, new: bool) -> None:
        self.census.enter(holding, new=new)
        self.open.see(holding.keys)

    def _leave(self, known: Known) -> None:
        for number, holding in enumerate(known.holdings):
            self.census.leave(holding)
            self.open.see(holding.keys)
            self.copies.forget(source(known.message.message_id, number))
        for item in known.items:
            self.open.drop(item)

    def _forget(self, shown: set[str]) -> None:
        for message_id in self.known.keys() - shown:
            known = self.known.pop(message_id)
            self._leave(known)
            for number in range(len(known.holdings)):
                self.clues.drop_list(source(message_id, number))
        if len(self._called) > _SLACK + 2 * len(self.known):
            self._forget_calls()

    def _forget_calls(self) -> None:
        """Let go of the calls of messages that left; one that comes back is read again."""
        known = self.known
        self._called = {call: at for call, at in self._called.items() if at[0] in known}
        self._calls = {call: made for call, made in self._calls.items() if call in self._called}
        self._names = {k: v for k, v in self._names.items() if k.rpartition("/")[0] in known}


def _may_be_stub(part: Part) -> bool:
    """Tell whether a part is a result of ours to shorten: a provider's own ones and images are not."""
    if part.kind != "tool_result" or part.server_side or part.media_tokens:
        return False
    return not is_tombstone(part.text)
