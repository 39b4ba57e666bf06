"""A collection as a plan: what would leave, and why, as data."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
from msgspec.structs import replace

from ctxgc.config import mask_text
from ctxgc.core import (
    Action,
    ContextSegment,
    KeepScore,
    Message,
    PruningCandidate,
    PruningPlan,
    Scope,
    ScoreContext,
    age,
    age_text,
    assemble,
    candidate_for,
    checked_target,
    in_scope,
)
from ctxgc.guard import Thrash
from ctxgc.session.accounting import ContextUsage
from ctxgc.session.apply import moves_of, swap
from ctxgc.session.events import EventKind
from ctxgc.session.plugin_check import (
    Bounds,
    CheckedProposal,
    HistoryChange,
    apply_beside,
    compare,
    run_plugin,
    true_items,
)
from ctxgc.session.record import Applied
from ctxgc.session.state import Workings
from ctxgc.stores import Put
from ctxgc.strategies import GCResult, GCTriggerReason, opens_turn

# -- A pause for Python's own garbage collector


@contextmanager
def cycles_paused() -> Iterator[None]:
    """Let nobody look for cycles meanwhile; afterwards it is as it was."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


# -- Faults: what had left the view was needed again. Its like stays longer, and too many stop col


def note_faults(
    w: Workings, segments: Iterable[ContextSegment], message_ids: Iterable[str] = ()
) -> None:
    """Take note that segments were asked for which had left, and which messages that brings back."""
    for segment in segments:
        w.ghosts.note(segment, w.requests)
    tell(w, w.thrashing.note_back(message_ids, w.requests))


def tell(w: Workings, found: Thrash | None) -> None:
    """Tell that collecting does more harm than good, if that was found; the next collection says it too."""
    if found is not None:
        w.thrash = {name: number for name, number in msgspec.to_builtins(found).items() if number}
        w.events.emit("thrashing", **w.thrash)


# -- The messages that no plugin may take out or edit, and why


def must_stay(w: Workings) -> dict[str, str]:
    """Return the ids of the messages that have to stay as they are, each with the reason."""
    messages = w.view.messages
    requests = [m.message_id for m in messages if m.role == "user" and opens_turn(m)]
    system = [m.message_id for m in messages if m.role == "system"]
    return {
        **{name: _why_kept(w, name) for name in w.kept_messages()},
        **dict.fromkeys(requests[-1:], "it is the last request"),
        **dict.fromkeys(requests[:1], "it is the first request"),
        **dict.fromkeys(system, "it is system text"),
    }


def _why_kept(w: Workings, message_id: str) -> str:
    recalled = w.held_until.get(message_id, 0) > w.collections
    return "it was recalled not long ago" if recalled else "it is pinned"


# -- Collections: when they are due, what they propose, and what becomes of it


STUCK_SHARE = 0.01
LEAST_SHARE = 0.10


def collect_if_due(w: Workings) -> GCResult | None:
    """Collect when the strategy says so, or when the hard limit is reached before a request."""
    if not w.config.auto_trigger or _is_stuck(w):
        return None
    usage = w.usage()
    is_full = usage.percent_used >= w.config.hard_limit_percent
    # Who undid a collection does not want other things to leave in its place.
    if w.undone.left_alone(w.requests) and not is_full:
        return None
    try:
        due, reason = w.plugin.should_collect(usage, w.config)
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything
        said = mask_text(f"should_collect raised {type(error).__name__}: {error}")
        w.events.emit("refused", plugin=w.plugin.name, error=said)
        due, reason = False, None
    if not due and is_full:
        due, reason = True, GCTriggerReason.PRE_MESSAGE
    return _make_room(w, usage, reason or GCTriggerReason.THRESHOLD) if due else None


def _make_room(w: Workings, usage: ContextUsage, reason: GCTriggerReason) -> GCResult:
    """Collect to the usual target; deeper, when collections would follow each other otherwise."""
    depth = w.thrashing.take_depth()
    usual = usage.target_tokens
    deeper = None if depth == 1 else int(depth * usual)
    result = collect(w, reason, deeper, promised=usual)
    if result.tokens_freed:
        won = result.tokens_freed / usage.context_limit
        tell(w, w.thrashing.note_room(w.requests, won))
    return result


def _is_stuck(w: Workings) -> bool:
    """A strategy that could not help is not asked again before the context has grown."""
    budget = w.books.budget
    # What does not fit cannot wait: the step that filled the window may be the last one no more.
    if w.stuck_at is None or budget.total_tokens() > budget.context_limit:
        return False
    return budget.total_tokens() < w.stuck_at + STUCK_SHARE * budget.context_limit


def collect(
    w: Workings,
    reason: GCTriggerReason,
    target_tokens: int | None = None,
    *,
    promised: int | None = None,
) -> GCResult:
    """Run the strategy and apply what it proposes.

    A shortfall is told by the target, or by what was `promised` where the target lies deeper.

    Raises:
        StoreError: what would leave could not be made durable; nothing has changed.
    """
    with cycles_paused():
        return _collect(w, reason, target_tokens, promised)


def _collect(
    w: Workings, reason: GCTriggerReason, target_tokens: int | None, promised: int | None
) -> GCResult:
    outcome = propose(w, reason, target_tokens)
    result = outcome.result
    if promised is not None:
        result.shortfall = max(0, result.tokens_after - promised)
    if reason is GCTriggerReason.MANUAL:
        w.undone.clear()
    worth = result.tokens_freed >= _least_gain(w, reason)
    # Re-writing the cached prefix for next to nothing would cost more than it wins.
    wanted = worth or reason is GCTriggerReason.MANUAL or not result.shortfall
    result = result if wanted else _without_progress(result)
    described = result.to_dict()
    if wanted and outcome.change:
        _apply(w, outcome, described)
    else:
        w.archive.later(Put("collections", _key(w), {"result": described}))
    if wanted:
        apply_beside(result.removal_list, w.books.budget)
    w.results.append(result)
    w.stuck_at = None if worth else w.books.budget.total_tokens()
    _tell(w, result.success, described)
    return result


def impose(
    w: Workings,
    new: list[Message],
    who: str,
    *,
    reason: GCTriggerReason = GCTriggerReason.CONTEXT_LIMIT,
    scope: Scope = "major",
    details: dict[str, Any] | None = None,
) -> GCResult:
    """Show a smaller view that no plugin proposed, recorded like a collection: it can be undone.

    What was in its scope and stays grows older by it.

    Raises:
        StoreError: what would leave could not be made durable; nothing has changed.
    """
    change = compare(w.view.messages, new)
    before = w.books.budget.total_tokens()
    items = true_items((), change, w.books.budget, w.books.tokens, otherwise=who)
    result = GCResult(
        success=True,
        items_collected=len(items),
        tokens_before=before,
        tokens_after=before - sum(item.tokens_freed for item in items),
        plugin_name=who,
        trigger_reason=reason,
        details=details or {},
        removal_list=items,
    )
    described = result.to_dict()
    _apply(w, CheckedProposal(history=new, change=change, result=result), described, scope)
    w.results.append(result)
    _tell(w, success=True, described=described)
    return result


def _least_gain(w: Workings, reason: GCTriggerReason) -> float:
    """What a collection that misses its target must at least free: little once the limit is near."""
    hard = w.books.budget.utilization() >= w.config.hard_limit_percent
    forced = hard or reason in (GCTriggerReason.CONTEXT_LIMIT, GCTriggerReason.PRE_MESSAGE)
    return (STUCK_SHARE if forced else LEAST_SHARE) * w.books.budget.context_limit


def _without_progress(result: GCResult) -> GCResult:
    """Return the result of a collection that was left undone because it won too little."""
    if not result.success or not result.tokens_freed:
        return result
    return replace(
        result,
        items_collected=0,
        tokens_after=result.tokens_before,
        removal_list=[],
        notification=None,
        details={"no_progress": f"only {result.tokens_freed} tokens could be freed"},
        shortfall=result.shortfall + result.tokens_freed,
    )


def propose(w: Workings, reason: GCTriggerReason, target_tokens: int | None) -> CheckedProposal:
    """Return what the strategy would do now."""
    if target_tokens is not None:
        checked_target(target_tokens)
    # Turns were pinned by their ids as they came in; their numbers may have moved since.
    config = w.config.replace(pinned_turn_indices=()) if w.config.pinned_turn_indices else w.config
    return run_plugin(
        w.plugin,
        w.view.paired(),
        w.usage(target_tokens),
        config,
        reason,
        budget=w.books.budget,
        bounds=Bounds(
            tokens=w.books.tokens,
            must_stay=must_stay(w),
            binds=w.binds_thinking,
        ),
    )


def _apply(
    w: Workings, outcome: CheckedProposal, described: dict[str, Any], scope: Scope = "major"
) -> None:
    """Make a proposal durable, then real."""
    change = outcome.change
    record = Applied(
        number=len(w.results) + 1,
        before=(*change.gone, *(before for before, _ in change.edited)),
        added=tuple(m.message_id for m in change.added),
        places={
            m.message_id: w.view.place_of(m.message_id)
            for m in change.gone
            if m.origin == "gc_notice"
        },
    )
    if w.thrash:
        outcome.result.details["thrashing"] = described["details"]["thrashing"] = w.thrash
    doc = {"result": described, **record.to_doc(w.view.originals)}
    swap(
        w,
        outcome.history,
        change,
        created_by=outcome.result.plugin_name,
        more=[Put("collections", _key(w), doc)],
    )
    w.thrash = {}
    w.thrashing.note_left((m.message_id for m in record.before), w.requests)
    w.applied.append(record)
    w.collections += 1
    age(w.heap, in_scope(w.heap, scope), w.config.promote_after)


def _key(w: Workings) -> str:
    """The key of the next result's document."""
    return f"{len(w.results) + 1:06d}"


def _tell(w: Workings, success: bool, described: dict[str, Any]) -> None:
    kind: EventKind = "collected" if success else "refused"
    w.events.emit(kind, number=len(w.results), result=described)
    if success:
        w.events.emit("budget_updated", total_tokens=w.books.budget.total_tokens())


# -- A collection as a plan: what would leave, and why, as data


def plan(w: Workings, target_tokens: int | None) -> PruningPlan:
    """Return what a collection would do, as a plan; nothing changes."""
    summaries, numbered = w.summaries, w.segmenter.numbered
    outcome = propose(w, GCTriggerReason.MANUAL, target_tokens)
    result = outcome.result
    reasons = {item.child_key: item.reason for item in result.removal_list}
    candidates = [
        _candidate(w, segment, reasons.get(segment.message_id, ""), action)
        for segment, action in _leaving(w, outcome.change)
    ]
    w.summaries, w.segmenter.numbered = summaries, numbered
    made = assemble(
        candidates,
        target_tokens=None,
        why=result.error or f"{w.plugin.name}: {len(candidates)} segments leave",
        tokens_before=result.tokens_before,
    )
    return replace(
        made,
        total_tokens_freed=result.tokens_freed,
        shortfall=result.shortfall,
        heap_version=w.heap.version,
    )


def _leaving(w: Workings, change: HistoryChange) -> list[tuple[ContextSegment, Action]]:
    """The segments that would leave the working tier, and how."""
    found: list[tuple[ContextSegment, Action]] = []
    for move in moves_of(w, change, frozenset()):
        found += [(w.heap.get(i), "stash") for i in move.stashed]
        if move.exchange is not None:
            replaced = [str(stand_in.derived_from) for stand_in in move.exchange.made]
            found += [(w.heap.get(i), "evacuate") for i in (*replaced, *move.exchange.dropped)]
    return found


def _candidate(
    w: Workings, segment: ContextSegment, reason: str, action: Action
) -> PruningCandidate:
    now = w.clock()
    score = KeepScore(w.config.score_profile, dict(w.config.score_weights))
    return candidate_for(
        segment,
        now,
        score(segment, ScoreContext(now=now, step=w.heap.step)),
        reason=f"{reason}; {segment.type}, {age_text(segment.age(now))} old",
        action=action,
        bond=w.heap.bonds.group(segment),
    )
