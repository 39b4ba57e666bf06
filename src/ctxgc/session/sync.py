"""Syncing: a whole history comes again, and only what is new of it is taken in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from ctxgc.core import Format, Message
from ctxgc.session.apply import swap
from ctxgc.session.archive import arrival_write, form_writes
from ctxgc.session.plugin_check import compare
from ctxgc.session.state import Workings
from ctxgc.session.view import View, digest
from ctxgc.stores import Drop
from ctxgc.wire import message_bytes, parse


def sync(w: Workings, messages: Sequence[Message]) -> list[str]:
    """Take in what is new; where the history differs from what came in, go on from there."""
    shared = w.view.shared_with(messages)
    new = messages[shared:]
    if shared < len(w.view.arrivals):
        _rewind(w, shared, new)
    return w.take_all(new)


def _rewind(w: Workings, count: int, new: Sequence[Message]) -> None:
    """Stash all but the first `count` messages that came in; the host took them back."""
    forgotten = frozenset(arrival.message_id for arrival in w.view.arrivals[count:])
    leaving = forgotten | _strays(w.view, count)
    rest = [m for m in w.view.messages if m.message_id not in leaving]
    trial = View()
    trial.show(rest)
    trial.check_next(*new)
    traces = [
        write
        for message_id in forgotten
        for write in (Drop("messages", message_id), *form_writes(message_id, None, None))
    ]
    swap(w, rest, compare(w.view.messages, rest), forget=forgotten, more=traces)
    for message_id in forgotten:
        w.view.originals.pop(message_id, None)
    w.view.restate(w.view.arrivals[:count])
    w.books.forget(forgotten)
    w.applied = [record.without(forgotten) for record in w.applied]


def _strays(view: View, count: int) -> set[str]:
    """The messages behind the first `count` that came in which a restore brought back after a rewind.

    One that says what such a message said, and stands in its stead, is none.
    """
    kept = {arrival.message_id: arrival.digest for arrival in view.arrivals[:count]}
    here = {message.message_id for message in view.messages}
    border = max((view.place_of(name) for name in here & kept.keys()), default=-1.0)
    missing = Counter(known for name, known in kept.items() if name not in here)
    strays: set[str] = set()
    for message in view.messages:
        name = message.message_id
        if message.origin != "conversation" or view.number_of(name) is not None:
            continue
        if view.place_of(name) > border:
            said = digest(message)
            missing[said] -= 1
            if missing[said] < 0:
                strays.add(name)
    return strays


def is_plain(message: Message) -> bool:
    """Tell whether a message is nothing but text, which reads the same in every format."""
    return message.role != "tool" and all(part.kind == "text" for part in message.parts)


def reformat(w: Workings, format_: Format) -> None:
    """Read the plain messages of a session, whose format was only guessed, in another format."""
    for message_id, left in w.view.originals.items():
        w.view.originals[message_id] = replace(left, message=_read_as(left.message, format_))
    w.applied = [
        replace(record, before=tuple(_read_as(m, format_) for m in record.before))
        for record in w.applied
    ]
    twins = [_read_as(message, format_) for message in w.view.messages]
    for old, new in zip(w.view.messages, twins, strict=True):
        w.books.leave(old)
        w.books.enter(new)
    w.view.show(twins)
    for message in (*twins, *(left.message for left in w.view.originals.values())):
        w.archive.later(arrival_write(message, **w.arrival(message.message_id)))


def _read_as(message: Message, format_: Format) -> Message:
    twin = parse(message_bytes(message), format_, message.message_id)
    return replace(twin, origin=message.origin, source=message.source)
