"""Pruning: segments leave a context because an agent said so, by id, by words, or by a plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ctxgc.core.analysis import Analysis
from ctxgc.core.apply import Collection
from ctxgc.core.plan import Action, PruningCandidate, PruningPlan, assemble, reason_for
from ctxgc.core.segment import ContextSegment
from ctxgc.errors import InputError
from ctxgc.mcp.context import Context, PruneStrategy
from ctxgc.stores import Put

FIRM = frozenset(
    {
        "pinned", "current task", "active file", "open file", "breakpoint", "instructions",
        "original request", "open tool call", "session invariant",
    }
)  # fmt: skip
"""Roots that not even an explicit request moves: pins, and what the host works on."""


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """What will leave, and what stays although it was named, each with the reason."""

    plan: PruningPlan
    kept: dict[str, str]


def choose(
    context: Context,
    segments: Sequence[ContextSegment],
    strategy: PruneStrategy,
    *,
    by_query: bool,
    confirm: bool,
) -> Chosen:
    """Return the plan that lets these segments go, with all that they are bonded to.

    What a query found stays if any root rule holds it; what was named by id only if a firm one does.
    """
    analysis = context.engine.analyze(context.state())
    leaving: dict[str, ContextSegment] = {}
    kept: dict[str, str] = {}
    for segment in segments:
        bond = _together(context, segment)
        why = _why_kept(analysis, bond, by_query=by_query)
        if segment.tier == "stashed" and strategy != "delete":
            why = "stashed already"
        if why:
            kept[segment.segment_id] = why
        else:
            leaving.update((member.segment_id, member) for member in bond)
    chosen = [
        _candidate(
            analysis, segment, _action(context, analysis, segment, strategy, confirm=confirm)
        )
        for segment in leaving.values()
    ]
    return Chosen(plan=_assembled(context, chosen), kept=kept)


def with_strategy(context: Context, plan: PruningPlan, strategy: PruneStrategy) -> PruningPlan:
    """Return a plan that deletes what it would have stashed, if that is the strategy."""
    if strategy != "delete":
        return plan
    changed = [
        msgspec.structs.replace(c, action="delete") if c.action == "stash" else c
        for c in plan.candidates
    ]
    return msgspec.structs.replace(_assembled(context, changed), stubs=plan.stubs)


def check_confirmed(plan: PruningPlan, *, confirm: bool) -> None:
    """Make sure that what a plan deletes was confirmed.

    Raises:
        InputError: it was not; `details` say what would be gone.
    """
    if plan.delete_segments and not confirm:
        raise InputError(
            f"{len(plan.delete_segments)} segments would be deleted for good",
            hint="call again with confirm=true, or with strategy='stash' to keep them recallable",
            field="confirm",
            segment_ids=plan.delete_segments[:50],
            tokens=plan.total_tokens_freed,
        )


def carry_out(context: Context, plan: PruningPlan) -> Collection:
    """Do what a plan says. What is deleted from the stash leaves as well."""
    stashed = [i for i in plan.delete_segments if context.heap.get(i).tier == "stashed"]
    if stashed:
        plan = _assembled(context, [c for c in plan.candidates if c.segment_id not in stashed])
        for segment_id in stashed:
            context.heap.remove(segment_id)
        plan = msgspec.structs.replace(plan, heap_version=context.heap.version)
    done = context.engine.apply(plan, context.heap)
    context.stash.learn(list(done.replaced.values()))
    return msgspec.structs.replace(done, deleted=[*done.deleted, *stashed])


def record(context: Context, done: Collection, trigger: str) -> int:
    """Note a collection in the history and return its number."""
    context.saved.collections += 1
    number = context.saved.collections
    reasons = {c.segment_id: c.reason for c in done.plan.candidates}
    doc: dict[str, Any] = {
        "number": number,
        "at": context.clock().isoformat(),
        "trigger": trigger,
        "tokens_before": done.tokens_before,
        "tokens_after": done.tokens_after,
        "stashed": done.stashed,
        "deleted": done.deleted,
        "replaced": done.replaced,
        "reasons": reasons,
    }
    context.writes.append(Put("collections", f"{number:06d}", doc))
    return number


def _together(context: Context, segment: ContextSegment) -> list[ContextSegment]:
    """A segment with what goes when it goes: its bond, or the stub that would recall nothing."""
    heap = context.heap
    if segment.tier == "working":
        return [heap.get(member) for member in heap.bonds.group(segment)]
    sources = (heap.get(source) for source in heap.backrefs.get(segment.segment_id, ()))
    return [segment, *(s for s in sources if s.derived_from == segment.segment_id)]


def _why_kept(analysis: Analysis, bond: Sequence[ContextSegment], *, by_query: bool) -> str:
    """The first reason that holds one of these; empty when none does."""
    for segment in bond:
        if segment.pinned:
            return "pinned: unpin it first"
        for reason in analysis.roots.why(segment.segment_id):
            if by_query or reason in FIRM:
                return reason
    return ""


def _action(
    context: Context,
    analysis: Analysis,
    segment: ContextSegment,
    strategy: PruneStrategy,
    *,
    confirm: bool,
) -> Action:
    """`auto` deletes only a confirmed, unreachable copy of what stays; all else it stashes."""
    if strategy != "auto":
        return strategy
    if not confirm or segment.superseded_how != "identical":
        return "stash"
    newer = context.heap.peek(segment.superseded_by or "")
    has_copy = newer is not None and newer.tier == "working"
    return "delete" if has_copy and not analysis.is_reachable(segment.segment_id) else "stash"


def _candidate(analysis: Analysis, segment: ContextSegment, action: Action) -> PruningCandidate:
    live = analysis.is_reachable(segment.segment_id)
    score = analysis.scores.get(segment.segment_id, 0.0)
    age = (analysis.state.now - segment.created_at).total_seconds()
    working = segment.tier == "working"
    return PruningCandidate(
        segment_id=segment.segment_id,
        score=score,
        tokens=segment.tokens or 0,
        reason=f"asked for; {reason_for(segment, age, reachable=live, score=score)}",
        type=segment.type,
        age=age,
        action=action,
        reachable=live,
        freed=(segment.tokens or 0) if working else 0,
    )


def _assembled(context: Context, chosen: list[PruningCandidate]) -> PruningPlan:
    return assemble(
        chosen,
        target_tokens=None,
        tokens_before=context.tokens,
        heap_version=context.heap.version,
    )
