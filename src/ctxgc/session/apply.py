"""Applying a new view: the one way in which the view changes other than at its end.

Everything is decided first, then made durable in one commit, then made real. If the commit fails, nothing has
changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy

import msgspec
from msgspec.structs import force_setattr

from ctxgc.collector import Exchange
from ctxgc.core import ContextSegment, Message, Tier, common_prefix
from ctxgc.errors import PlanError
from ctxgc.invariants import check
from ctxgc.session.documents import form_writes
from ctxgc.session.journal import ChangeCause, change_writes
from ctxgc.session.part import SessionCore, SessionPart
from ctxgc.session.usage import UsageMeter
from ctxgc.session.view import HistoryChange, Original, View, compare
from ctxgc.stores import Drop, Put, Write

_NONE_GIVEN: Mapping[str, ContextSegment] = {}


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """How one message gets from what is shown of it to what will be shown.

    `original` is the message as it came in while that is not what is shown; `fresh` are the segments of a
    message that was never there before; `forgotten` messages cannot come back.
    """

    message_id: str
    before: Message | None
    after: Message | None
    original: Original | None = None
    ends: tuple[str, ...] = ()
    stashed: tuple[str, ...] = ()
    recalled: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    exchange: Exchange | None = None
    fresh: tuple[ContextSegment, ...] = ()
    forgotten: bool = False


class ViewEditor(SessionPart):
    """Replaces the view of a session, together with its segments, its budget and its documents."""

    def __init__(self, core: SessionCore, *, meter: UsageMeter) -> None:
        super().__init__(core)
        self._meter = meter
        self.rewrites = 0
        """How often something changed that had been sent."""

    def show(self, new: list[Message], cause: ChangeCause, *, created_by: str) -> None:
        """Show another history from now on, without the thinking that the model would refuse in it.

        Raises:
            StoreError: the change could not be made durable; nothing has changed.
        """
        new = self._thinking.strip(new)
        self.apply(new, compare(self._view.messages, new), cause, created_by=created_by)

    def show_again(
        self, new: list[Message], cause: ChangeCause, *, more: Sequence[Write] = ()
    ) -> None:
        """Show a history that was put together from earlier ones; `more` writes belong to the change.

        Raises:
            PlanError: it would be invalid; nothing has changed.
            StoreError: the change could not be made durable; nothing has changed.
        """
        new = self._thinking.strip(new)
        broken = [each.text for each in check(new, complete=False)] or self._open_calls(new)
        if broken:
            raise PlanError(
                f"the view would be invalid: {broken[0]}",
                hint="read(handle) shows the text without changing the view",
            )
        self.apply(new, compare(self._view.messages, new), cause, more=more)

    def apply(
        self,
        new: Sequence[Message],
        change: HistoryChange,
        cause: ChangeCause,
        *,
        created_by: str | None = None,
        forget: frozenset[str] = frozenset(),
        given: Mapping[str, ContextSegment] | None = None,
        more: Sequence[Write] = (),
    ) -> None:
        """Show another history from now on.

        Args:
            new: the history to show.
            change: how it differs from the view.
            cause: why it does, for the journal.
            created_by: what created the messages that are new in it.
            forget: messages that leave and cannot come back.
            given: the segments of new messages, by message; those of others are made.
            more: writes that belong to the change.

        Raises:
            StoreError: the change could not be made durable; nothing has changed.
        """
        moves = list(self.moves(change, forget, given or {}))
        if created_by is not None:
            self._accounting.makers.update(
                (move.message_id, created_by) for move in moves if move.fresh
            )
        places = self._view.places_for(new) if change.added else {}
        with self.rewrite(new) as first:
            self._commit(moves, places, (*more, *self._noted(moves, cause)))
        final = {move.message_id: move.after for move in moves}
        # All that leaves leaves first: the heap removes many at once faster than one by one.
        self._let_go(moves)
        for move in moves:
            self._carry_out(move)
        rest = [final.get(m.message_id) or m for m in new[first:]]
        self._view.show([*new[:first], *rest], places, same=first)
        self._meter.watch()

    @contextmanager
    def rewrite(self, new: Sequence[Message]) -> Iterator[int]:
        """Yield the place from which the view changes; everything after it counts as unsent.

        What is made durable inside says so already. If that fails, the state is as before.
        """
        state = self._state
        first = common_prefix(self._view.messages, new)
        rewrites = first < state.sent_messages
        with state.rollback_on_error():
            state.sent_messages = min(state.sent_messages, first)
            cached = self._accounting.tokens_up_to(self._view.messages, first)
            state.sent_before = min(state.sent_before, cached)
            if state.probation is not None:
                state.probation = None if rewrites else state.probation.read_to(first)
            yield first
        self.rewrites += rewrites

    def moves(
        self,
        change: HistoryChange,
        forget: frozenset[str] = frozenset(),
        given: Mapping[str, ContextSegment] = _NONE_GIVEN,
    ) -> Iterator[Move]:
        """Yield the moves of a change, in the order of the view; those in `forget` leave for good."""
        together = self._view.left_together({m.message_id for m in change.gone})
        for message in change.gone:
            yield self._leave(message, together.get(message.message_id, ()), forget)
        for before, after in change.edited:
            yield self._edit(before, after)
        for message in change.added:
            known = message.message_id in self._view.originals
            own = given.get(message.message_id)
            yield self._edit(None, message) if known else self._come(message, own)

    # -- deciding -----------------------------------------------------------------------------------

    def _leave(self, message: Message, together: tuple[str, ...], forget: frozenset[str]) -> Move:
        message_id = message.message_id
        known = self._view.originals.get(message_id)
        shown = self._segmenter.segment_ids(message_id)
        own = known.segment_ids if known else shown
        # Notices are about the view; outside of it they say nothing.
        if message.origin == "gc_notice":
            return Move(
                message_id=message_id, before=message, after=None, ends=shown, forgotten=True
            )
        return Move(
            message_id=message_id,
            before=message,
            after=None,
            original=Original(
                kept=known.kept if known else message, segment_ids=own, together=together
            ),
            ends=_without(shown, own),
            stashed=tuple(i for i in shown if i in own),
            forgotten=message_id in forget,
        )

    def _edit(self, before: Message | None, after: Message) -> Move:
        message_id = after.message_id
        shown = self._segmenter.segment_ids(message_id)
        known = self._view.originals.get(message_id)
        if known is None:
            # A message that is in the view as it came in has no original stored with it.
            known = Original(kept=before or after, segment_ids=shown)
        own = known.segment_ids
        ends = _without(shown, own)
        arrived = known.message
        if after.data == arrived.data:
            return Move(
                message_id=message_id, before=before, after=arrived, ends=ends,
                recalled=self._stashed(own), ids=own,
            )  # fmt: skip
        exchange = self._segmenter.exchange(arrived, after, own)
        return Move(
            message_id=message_id,
            before=before,
            after=after,
            original=Original(kept=known.kept, segment_ids=own),
            ends=ends,
            recalled=self._stashed([i for i in own if i in exchange.ids]),
            exchange=exchange,
        )

    def _come(self, message: Message, given: ContextSegment | None) -> Move:
        fresh = tuple(self._segmenter.prepare(message)) if given is None else (given,)
        return Move(message_id=message.message_id, before=None, after=message, fresh=fresh)

    def _stashed(self, segment_ids: Sequence[str]) -> tuple[str, ...]:
        return tuple(i for i in segment_ids if self._heap.get(i).tier == "stashed")

    def _open_calls(self, new: Sequence[Message]) -> list[str]:
        """Return what is wrong if what comes back brings an open call, or comes after one."""
        view = self._view
        here = {message.message_id for message in view.messages}
        back = [view.place_of(m.message_id) for m in new if m.message_id not in here]
        trial = View()
        trial.show(new)
        return [
            f"the call '{call}' waits for its result"
            for call, message_id in trial.waiting.items()
            if call not in view.waiting or (back and max(back) > view.place_of(message_id))
        ]

    # -- making it durable --------------------------------------------------------------------------

    def _commit(
        self, moves: Sequence[Move], places: Mapping[str, float], more: Sequence[Write]
    ) -> None:
        writes: list[Write] = []
        for move in moves:
            writes += self._segment_writes(move)
            writes += self._message_writes(move, places)
        self._archive.note_changes()
        self._archive.commit(*writes, *more)

    def _noted(self, moves: Sequence[Move], cause: ChangeCause) -> list[Write]:
        """Return the journal's entry of a change: what is shown no longer, again, and in place of what."""
        out: dict[str, None] = {}
        back: dict[str, None] = {}
        fresh: list[ContextSegment] = []
        made: list[ContextSegment] = []
        for move in moves:
            out.update(dict.fromkeys((*move.ends, *move.stashed)))
            back.update(dict.fromkeys(move.recalled))
            fresh += move.fresh
            if move.exchange is not None:
                out.update(dict.fromkeys(move.exchange.dropped))
                made += move.exchange.made
        return change_writes(
            self._state, cause, out=list(out), back=list(back), fresh=fresh, made=made,
            collection=len(self._log.results) + 1 if cause == "collection" else None,
        )  # fmt: skip

    def _segment_writes(self, move: Move) -> list[Write]:
        made = move.exchange.made if move.exchange else ()
        writes: list[Write] = [Drop("segments", i) for i in move.ends]
        writes += [self._write_at(i, "stashed") for i in move.stashed]
        if move.exchange is not None:
            left = (*move.exchange.dropped, *(str(s.derived_from) for s in made))
            writes += [self._write_at(i, "stashed") for i in left]
        writes += [self._write_at(i, "working") for i in move.recalled]
        writes += [self._archive.changed_segment(segment) for segment in (*made, *move.fresh)]
        return writes

    def _write_at(self, segment_id: str, tier: Tier) -> Write:
        """Return the write of a segment as it will be in another tier."""
        twin = copy(self._heap.get(segment_id))
        force_setattr(twin, "tier", tier)
        return self._archive.changed_segment(twin)

    def _message_writes(self, move: Move, places: Mapping[str, float]) -> Iterable[Write]:
        message_id = move.message_id
        if move.forgotten:
            return Drop("messages", message_id), *form_writes(message_id, None, None)
        if move.fresh and move.after is not None:
            return (self._archive.arrival(move.after, places.get(message_id)),)
        writes = form_writes(message_id, move.after, move.original)
        # For a message that is as it came in, nothing is stored that could be dropped.
        known = message_id in self._view.originals
        return writes if known else [write for write in writes if isinstance(write, Put)]

    # -- making it real -----------------------------------------------------------------------------

    def _let_go(self, moves: Sequence[Move]) -> None:
        for segment_id in [i for move in moves for i in move.ends]:
            self._heap.remove(segment_id)
            self._archive.drop_segment(segment_id)
        leaving: list[str] = []
        for move in moves:
            leaving += move.stashed
            if move.exchange is not None:
                leaving += [str(stand_in.derived_from) for stand_in in move.exchange.made]
        self._heap.stash_all(leaving)

    def _carry_out(self, move: Move) -> None:
        for segment_id in move.recalled:
            self._heap.recall(segment_id)
        self._connect(move)
        if move.before is not None:
            self._accounting.leave(move.before)
        if move.after is not None:
            self._accounting.enter(move.after)
        if move.original is None or move.forgotten:
            self._view.originals.pop(move.message_id, None)
        else:
            self._view.originals[move.message_id] = self._archive.put_away(move.original)

    def _connect(self, move: Move) -> None:
        """Connect a message with the segments that are shown of it now."""
        if move.after is None:
            self._segmenter.forget(move.message_id)
        elif move.fresh:
            self._segmenter.enter(move.after, move.fresh)
        elif move.exchange is not None:
            self._segmenter.carry_out(move.message_id, move.exchange)
        else:
            self._segmenter.adopt(move.message_id, move.ids)


def _without(segment_ids: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    return tuple(i for i in segment_ids if i not in others)
