"""Swapping the view: the one way in which it changes other than at its end.

Everything is decided first, then made durable in one commit, then made real. When the commit fails,
nothing has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy

import msgspec
from msgspec.structs import force_setattr

from ctxgc.core import ContextSegment, Message, Tier, common_prefix
from ctxgc.session.archive import arrival_write, form_writes, segment_write
from ctxgc.session.plugin_check import HistoryChange, compare
from ctxgc.session.rollback import trying
from ctxgc.session.state import Workings, note_changes
from ctxgc.session.view import Gone
from ctxgc.stores import Drop, Put, Write
from ctxgc.strategies import Exchange, opens_turn

# -- Moves: what a new view means for each message that is not in it as it was, decided before it


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """How one message gets from what is shown of it to what shall be shown.

    `left` is the message as it came in while that is not what is shown; `fresh` are the segments of a
    message that was never there before; `forgotten` ones leave no way back.
    """

    message_id: str
    before: Message | None
    after: Message | None
    left: Gone | None = None
    ends: tuple[str, ...] = ()
    stashed: tuple[str, ...] = ()
    recalled: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    exchange: Exchange | None = None
    fresh: tuple[ContextSegment, ...] = ()
    forgotten: bool = False


def moves_of(w: Workings, change: HistoryChange, forget: frozenset[str]) -> Iterator[Move]:
    """Yield the moves of a change, in the order of the view; those in `forget` leave for good."""
    together = w.view.left_together({m.message_id for m in change.gone})
    for message in change.gone:
        yield _leave(w, message, together.get(message.message_id, ()), forget)
    for before, after in change.edited:
        yield _show(w, before, after)
    for message in change.added:
        known = message.message_id in w.view.originals
        yield _show(w, None, message) if known else _come(w, message)


def _leave(
    w: Workings, message: Message, together: tuple[str, ...], forget: frozenset[str]
) -> Move:
    message_id = message.message_id
    known = w.view.originals.get(message_id)
    shown = w.segment_ids(message_id)
    own = known.segment_ids if known else shown
    # Notices are about the view; outside of it they say nothing.
    if message.origin == "gc_notice":
        return Move(message_id=message_id, before=message, after=None, ends=shown, forgotten=True)
    return Move(
        message_id=message_id,
        before=message,
        after=None,
        left=Gone(message=known.message if known else message, segment_ids=own, together=together),
        ends=_without(shown, own),
        stashed=tuple(i for i in shown if i in own),
        forgotten=message_id in forget,
    )


def _show(w: Workings, before: Message | None, after: Message) -> Move:
    message_id = after.message_id
    shown = w.segment_ids(message_id)
    known = w.view.originals.get(message_id)
    if known is None:
        # Only what is in the view has no original kept beside it.
        known = Gone(message=before or after, segment_ids=shown)
    own = known.segment_ids
    ends = _without(shown, own)
    if after.data == known.message.data:
        return Move(
            message_id=message_id, before=before, after=known.message, ends=ends,
            recalled=_stashed(w, own), ids=own,
        )  # fmt: skip
    exchange = w.segmenter.exchange(known.message, after, own)
    return Move(
        message_id=message_id,
        before=before,
        after=after,
        left=Gone(message=known.message, segment_ids=own),
        ends=ends,
        recalled=_stashed(w, [i for i in own if i in exchange.ids]),
        exchange=exchange,
    )


def _come(w: Workings, message: Message) -> Move:
    fresh = tuple(w.segmenter.prepare(message))
    return Move(message_id=message.message_id, before=None, after=message, fresh=fresh)


def _stashed(w: Workings, segment_ids: Sequence[str]) -> tuple[str, ...]:
    return tuple(i for i in segment_ids if w.heap.get(i).tier == "stashed")


def _without(segment_ids: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    return tuple(i for i in segment_ids if i not in others)


# -- Swapping the view: the one way in which it changes other than at its end


def show(w: Workings, new: list[Message], *, created_by: str | None = None) -> None:
    """Show another history from now on, without the thinking that the model would refuse in it.

    Raises:
        StoreError: the change could not be made durable; nothing has changed.
    """
    if w.binds_thinking:
        new = w.bound.strip(w.view.messages, new)
    swap(w, new, compare(w.view.messages, new), created_by=created_by)


def swap(
    w: Workings,
    new: Sequence[Message],
    change: HistoryChange,
    *,
    created_by: str | None = None,
    forget: frozenset[str] = frozenset(),
    more: Sequence[Write] = (),
) -> None:
    """Show another history from now on.

    Args:
        w: the session's workings.
        new: the history to show.
        change: how it differs from the view.
        created_by: who made the messages that are new in it.
        forget: messages that leave without a way back.
        more: writes that belong to the change.

    Raises:
        StoreError: the change could not be made durable; nothing has changed.
    """
    moves = list(moves_of(w, change, forget))
    if created_by is not None:
        w.books.makers.update((move.message_id, created_by) for move in moves if move.fresh)
    places = w.view.places_for(new) if change.added else {}
    with rewriting(w, new) as first:
        _commit(w, moves, places, more)
    final = {move.message_id: move.after for move in moves}
    # All that leaves leaves first: the heap takes many out at once faster than one by one.
    _let_go(w, moves)
    for move in moves:
        _carry_out(w, move)
    rest = [final.get(m.message_id) or m for m in new[first:]]
    w.view.show([*new[:first], *rest], places, same=first)
    w.turns_in_view += sum(_turns(move.after) - _turns(move.before) for move in moves)
    w.watch()


@contextmanager
def rewriting(w: Workings, new: Sequence[Message]) -> Iterator[int]:
    """Give the place where the view changes once this is shown; what stands behind it counts as unsent.

    What is made durable inside says so already. When that fails, all counts as before.
    """
    first = common_prefix(w.view.messages, new)
    with trying(
        w,
        rewrites=w.rewrites + (first < w.sent_messages),
        sent_messages=min(w.sent_messages, first),
        sent_before=min(w.sent_before, _before(w, first)),
    ):
        yield first


def _before(w: Workings, place: int) -> int:
    """Return the tokens that stay cached: those in front of a place, and what is sent beside the messages."""
    messages, budget = w.view.messages, w.books.budget
    if place > len(messages) // 2:
        return budget.total_tokens() - sum(map(w.books.tokens, messages[place:]))
    beside = budget.total_tokens() - w.books.message_total
    return beside + sum(map(w.books.tokens, messages[:place]))


def _commit(
    w: Workings, moves: Sequence[Move], places: Mapping[str, float], more: Sequence[Write]
) -> None:
    writes: list[Write] = []
    for move in moves:
        writes += _segment_writes(w, move)
        writes += _message_writes(w, move, places)
    note_changes(w)
    w.archive.commit(*writes, *more)


def _segment_writes(w: Workings, move: Move) -> list[Write]:
    made = move.exchange.made if move.exchange else ()
    writes: list[Write] = [Drop("segments", i) for i in move.ends]
    writes += [_write(w, _at(w.heap.get(i), "stashed")) for i in move.stashed]
    if move.exchange is not None:
        left = (*move.exchange.dropped, *(str(s.derived_from) for s in made))
        writes += [_write(w, _at(w.heap.get(i), "stashed")) for i in left]
    writes += [_write(w, _at(w.heap.get(i), "working")) for i in move.recalled]
    writes += [_write(w, segment) for segment in (*made, *move.fresh)]
    return writes


def _message_writes(w: Workings, move: Move, places: Mapping[str, float]) -> Iterable[Write]:
    if move.forgotten:
        return Drop("messages", move.message_id), *form_writes(move.message_id, None, None)
    if move.fresh and move.after is not None:
        place = places.get(move.message_id)
        return (arrival_write(move.after, **w.arrival(move.message_id, place)),)
    writes = form_writes(move.message_id, move.after, move.left)
    # Of a message that is as it came in, nothing is stored that could be dropped.
    known = move.message_id in w.view.originals
    return writes if known else [write for write in writes if isinstance(write, Put)]


def _let_go(w: Workings, moves: Sequence[Move]) -> None:
    for segment_id in [i for move in moves for i in move.ends]:
        w.heap.remove(segment_id)
        w.archive.drop_segment(segment_id)
    leaving: list[str] = []
    for move in moves:
        leaving += move.stashed
        if move.exchange is not None:
            leaving += [str(stand_in.derived_from) for stand_in in move.exchange.made]
    w.heap.stash_all(leaving)


def _carry_out(w: Workings, move: Move) -> None:
    for segment_id in move.recalled:
        w.heap.recall(segment_id)
    _connect(w, move)
    if move.before is not None:
        w.books.leave(move.before)
    if move.after is not None:
        w.books.enter(move.after)
    if move.left is None or move.forgotten:
        w.view.originals.pop(move.message_id, None)
    else:
        w.view.originals[move.message_id] = move.left


def _connect(w: Workings, move: Move) -> None:
    """Connect a message with the segments that are shown of it now."""
    if move.after is None:
        w.segmenter.forget(move.message_id)
    elif move.fresh:
        w.segmenter.enter(move.after, move.fresh)
    elif move.exchange is not None:
        w.segmenter.carry_out(move.message_id, move.exchange)
    else:
        w.segmenter.adopt(move.message_id, move.ids)


def _write(w: Workings, segment: ContextSegment) -> Write:
    w.archive.remember(segment)
    return segment_write(segment, w.handle(segment.segment_id))


def _at(segment: ContextSegment, tier: Tier) -> ContextSegment:
    """Return the segment as it will be in another tier."""
    twin = copy(segment)
    force_setattr(twin, "tier", tier)
    return twin


def _turns(message: Message | None) -> int:
    return 0 if message is None else opens_turn(message)
