"""The reader: what thrift knows about each message, kept in step with what is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ctxgc.core import Message, Part, Text, is_tombstone
from ctxgc.strategies.mark_sweep.calls import (
    CallEffect,
    kind_of_result,
    may_leave,
    read_call,
    was_made,
)
from ctxgc.strategies.mark_sweep.copies import Copies
from ctxgc.strategies.mark_sweep.items import Census, Clues, Holding, Item, Opened, source, whole
from ctxgc.wire import PartTexts

_UNKNOWN = CallEffect(kind="other")

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
            item.born = request
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
            self._add(
                known, Item(known.message.message_id, number, text, kind=kind, call=call, born=born)
            )
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


def _may_be_stub(part: Part) -> bool:
    """Tell whether a part is a result of ours to shorten: a provider's own ones and images are not."""
    if part.kind != "tool_result" or part.server_side or part.media_tokens:
        return False
    return not is_tombstone(part.text)
