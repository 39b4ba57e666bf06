"""Collecting by itself: a bit of it after each arrival, all of it at the hard limit.

What was recalled counts: its like is spared by the small steps, and where most of what leaves comes back at
once, they pause. An arrival is to a context what a request is to a session.
"""

from __future__ import annotations

from ctxgc.core.apply import Collection
from ctxgc.core.ghosts import Ghosts
from ctxgc.core.segment import ContextSegment
from ctxgc.guard.thrashing import ThrashBreaker
from ctxgc.mcp.context import Context


def note_fault(context: Context, segment: ContextSegment) -> None:
    """Take note that a segment was asked for; it counts if that had left."""
    if segment.tier != "stashed":
        return
    ghosts, breaker = Ghosts(), _breaker(context)
    ghosts.restate(context.saved.ghosts)
    ghosts.note(segment, context.heap.updates)
    breaker.note_back([segment.segment_id], context.heap.updates)
    context.saved.ghosts, context.saved.thrashing = ghosts.to_doc(), breaker.to_doc()


def collect_if_due(context: Context) -> Collection | None:
    """Do the bounded bit of collecting that follows each arrival; all of it at the hard limit."""
    if not context.config.auto_trigger:
        return None
    breaker = _breaker(context)
    if context.engine.is_due(context.heap):
        done: Collection | None = _make_room(context, breaker)
    elif breaker.is_paused(context.heap.updates):
        return None
    else:
        done = context.engine.step(context.state())
    if done is None or not (done.stashed or done.deleted):
        return None
    breaker.note_left([*done.stashed, *done.replaced], context.heap.updates)
    context.saved.thrashing = breaker.to_doc()
    context.stash.learn(list(done.replaced.values()))
    return done


def _make_room(context: Context, breaker: ThrashBreaker) -> Collection:
    """Collect to the usual target; deeper, when collections would follow each other otherwise."""
    options, limit = context.engine.options, context.saved.context_limit
    target = limit * options.target_percent / 100 * breaker.take_depth()
    done = context.engine.collect(context.state(), free_tokens=max(0, context.tokens - int(target)))
    breaker.note_room(context.heap.updates, (done.tokens_before - done.tokens_after) / limit)
    context.saved.thrashing = breaker.to_doc()
    return done


def _breaker(context: Context) -> ThrashBreaker:
    breaker = ThrashBreaker()
    breaker.restate(context.saved.thrashing)
    return breaker
