"""Moves: what a new view means for each message that is not in it as it was, decided before it is done.

A message has three forms: as it came in, edited (stand-ins take the place of some of its segments),
and out of the view. A stand-in lives only while it is shown; what came in is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from ctxgc.core.message import Message
from ctxgc.core.segment import ContextSegment
from ctxgc.session.verdict import Change
from ctxgc.session.view import Gone
from ctxgc.session.workings import Workings
from ctxgc.strategies.segmenting import Exchange


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


def moves_of(w: Workings, change: Change, forget: frozenset[str]) -> Iterator[Move]:
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
