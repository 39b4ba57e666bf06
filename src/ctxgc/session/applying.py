"""Collections: decide, make durable, then swap the view. Nothing changes before it is durable."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ctxgc.core.generations import age, in_scope
from ctxgc.core.message import Message
from ctxgc.core.plan import Action, PruningCandidate, PruningPlan, age_text, assemble
from ctxgc.core.score import KeepScore, ScoreContext
from ctxgc.core.segment import ContextSegment
from ctxgc.errors import InputError
from ctxgc.session.archive import message_write, segment_write
from ctxgc.session.collecting import Outcome, run_plugin
from ctxgc.session.events import EventKind
from ctxgc.session.messages import message_to_doc
from ctxgc.session.record import Applied
from ctxgc.session.restoring import state_write
from ctxgc.session.saving import save_segments
from ctxgc.session.verdict import Change
from ctxgc.session.view import Gone, left_together
from ctxgc.session.workings import Workings
from ctxgc.stores import Drop, Put
from ctxgc.strategies.base import GCResult, GCTriggerReason
from ctxgc.strategies.turns import opens_turn

STUCK_SHARE = 0.01
LEAST_SHARE = 0.10


def collect_if_due(w: Workings) -> GCResult | None:
    """Collect when the strategy says so, or when the hard limit is reached before a request."""
    if not w.config.auto_trigger:
        return None
    usage = w.usage()
    if (
        w.stuck_at is not None
        and usage.total_tokens < w.stuck_at + STUCK_SHARE * usage.context_limit
    ):
        return None
    try:
        due, reason = w.plugin.should_collect(usage, w.config)
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything
        w.events.emit("refused", plugin=w.plugin.name, error=f"should_collect: {error}")
        due, reason = False, None
    if not due and usage.percent_used >= w.config.hard_limit_percent:
        due, reason = True, GCTriggerReason.PRE_MESSAGE
    return collect(w, reason or GCTriggerReason.THRESHOLD) if due else None


def collect(w: Workings, reason: GCTriggerReason, target_tokens: int | None = None) -> GCResult:
    """Run the strategy and apply what it proposes.

    Raises:
        StoreError: what would leave could not be made durable; nothing has changed.
    """
    outcome = propose(w, reason, target_tokens)
    result = outcome.result
    worth = result.tokens_freed >= _least_gain(w, reason)
    # Re-writing the cached prefix for next to nothing would cost more than it wins.
    if outcome.change and (worth or reason is GCTriggerReason.MANUAL or not result.shortfall):
        apply(w, outcome)
    elif outcome.change:
        result = _without_progress(result)
    w.results.append(result)
    # A strategy that could not help is not asked again before the context has grown.
    w.stuck_at = None if worth else w.books.budget.total_tokens()
    _tell(w, result)
    return result


def _least_gain(w: Workings, reason: GCTriggerReason) -> float:
    """What a collection that misses its target must at least free: little once the limit is near."""
    hard = w.books.budget.utilization() >= w.config.hard_limit_percent
    forced = hard or reason in (GCTriggerReason.CONTEXT_LIMIT, GCTriggerReason.PRE_MESSAGE)
    return (STUCK_SHARE if forced else LEAST_SHARE) * w.books.budget.context_limit


def _without_progress(result: GCResult) -> GCResult:
    """Return the result of a collection that was left undone because it won too little."""
    return msgspec.structs.replace(
        result,
        items_collected=0,
        tokens_after=result.tokens_before,
        removal_list=[],
        notification=None,
        details={"no_progress": f"only {result.tokens_freed} tokens could be freed"},
        shortfall=result.shortfall + result.tokens_freed,
    )


def propose(w: Workings, reason: GCTriggerReason, target_tokens: int | None) -> Outcome:
    """Return what the strategy would do now."""
    if target_tokens is not None and target_tokens < 0:
        raise InputError(
            f"target_tokens cannot be {target_tokens}", hint="zero or more", field="target_tokens"
        )
    # Turns were pinned by their ids as they came in; their numbers may have moved since.
    config = w.config.replace(pinned_turn_indices=()) if w.config.pinned_turn_indices else w.config
    return run_plugin(
        w.plugin,
        w.view.messages,
        w.usage(target_tokens),
        config,
        reason,
        budget=w.books.budget,
        tokens=w.books.tokens,
        must_stay=must_stay(w),
    )


def must_stay(w: Workings) -> list[str]:
    """Return the messages that no plugin may take out or edit."""
    messages = w.view.messages
    requests = [m.message_id for m in messages if opens_turn(m)]
    system = [m.message_id for m in messages if m.role == "system"]
    return [*system, *requests[:1], *requests[-1:], *w.kept_messages()]


def plan(w: Workings, target_tokens: int | None) -> PruningPlan:
    """Return what a collection would do, as a plan; nothing changes."""
    summaries = w.summaries
    outcome = propose(w, GCTriggerReason.MANUAL, target_tokens)
    w.summaries = summaries
    reasons = {item.child_key: item.reason for item in outcome.result.removal_list}
    candidates = [
        _candidate(w, segment, reasons.get(segment.message_id, ""), action)
        for segment, action in _leaving(w, outcome.change)
    ]
    made = assemble(
        candidates,
        target_tokens=None,
        why=outcome.result.error or f"{w.plugin.name}: {len(candidates)} segments leave",
        tokens_before=outcome.result.tokens_before,
    )
    return msgspec.structs.replace(
        made,
        total_tokens_freed=outcome.result.tokens_freed,
        shortfall=outcome.result.shortfall,
        heap_version=w.heap.version,
    )


def apply(w: Workings, outcome: Outcome) -> None:
    """Make a proposal durable, then real."""
    change = outcome.change
    number = len(w.applied) + 1
    gone = _gone(w, change)
    places = w.view.places_for(outcome.history, change.added)
    record = Applied(
        number=number,
        before=(*change.gone, *(before for before, _ in change.edited)),
        added=tuple(m.message_id for m in change.added),
    )
    _commit(w, outcome, gone, places, record)
    _rebook(w, change, outcome.result.plugin_name)
    _clear_sources(w, outcome.result)
    first = _first_change(w.view.messages, change)
    w.sent_before = min(w.sent_before, sum(w.books.tokens(m) for m in w.view.messages[:first]))
    w.view.swap(outcome.history, gone, places)
    w.turns_in_view = sum(opens_turn(m) for m in w.view.messages)
    w.applied.append(record)
    _age(w)
    w.watch()


def _commit(
    w: Workings, outcome: Outcome, gone: Sequence[Gone], places: dict[str, float], record: Applied
) -> None:
    """Write the stashed segments, the messages as they were, and the new view, in one piece."""
    change = outcome.change
    writes: list[Put | Drop] = [
        segment_write(
            msgspec.structs.replace(segment, tier="stashed"), w.handle(segment.segment_id)
        )
        for segment, _ in _leaving(w, change)
    ]
    for left in gone:
        key = left.message.message_id
        more = {"segment_ids": list(left.segment_ids), "together": list(left.together)}
        write = message_write(w.view, left.message, in_view=False, **more)
        writes.append(Put("messages", f"original:{key}", write.doc))
    writes += [message_write(w.view, m, in_view=False, **w.view.arrival(m)) for m in change.gone]
    writes += [message_write(w.view, m, **w.view.arrival(m)) for _, m in change.edited]
    writes += [
        Put(
            "messages",
            m.message_id,
            {**message_to_doc(m), "place": places[m.message_id], "in_view": True},
        )
        for m in change.added
    ]
    doc = {**record.to_doc(), "result": outcome.result.to_dict()}
    writes += [Put("collections", f"{record.number:06d}", doc), state_write(w)]
    save_segments(w)
    w.archive.commit(*writes)


def _gone(w: Workings, change: Change) -> list[Gone]:
    """What leaves, as it came in; a message edited before keeps its first original."""
    together = left_together(w.view.messages, {m.message_id for m in change.gone})
    found = []
    for message in [*change.gone, *(before for before, _ in change.edited)]:
        message_id = message.message_id
        if message.origin == "gc_notice":
            continue
        known = w.view.originals.get(message_id)
        found.append(
            Gone(
                message=known.message if known else message,
                segment_ids=known.segment_ids if known else w.segment_ids(message_id),
                together=together.get(message_id, known.together if known else ()),
            )
        )
    return found


def _leaving(w: Workings, change: Change) -> list[tuple[ContextSegment, Action]]:
    """The segments that leave the working tier, and how."""
    found: list[tuple[ContextSegment, Action]] = []
    for message in change.gone:
        found += [(w.heap.get(i), "stash") for i in w.segment_ids(message.message_id)]
    for before, after in change.edited:
        found += [(w.heap.get(i), "evacuate") for i in _changed_parts(w, before, after)]
    return found


def _changed_parts(w: Workings, before: Message, after: Message) -> list[str]:
    """The segments of a message whose parts are no longer in it as they were."""
    ids = w.segment_ids(before.message_id)
    kept = [(part.kind, part.call_id, part.text) for part in after.parts]
    changed = []
    for segment_id, part in zip(ids, before.parts, strict=False):
        key = (part.kind, part.call_id, part.text)
        if key in kept:
            kept.remove(key)
        else:
            changed.append(segment_id)
    return changed


def _rebook(w: Workings, change: Change, plugin_name: str) -> None:
    """Bring heap and budget in line with the new view."""
    for message in change.gone:
        for segment_id in w.segment_ids(message.message_id):
            w.heap.stash(segment_id)
        w.segmenter.forget(message.message_id)
        w.books.leave(message)
    for before, after in change.edited:
        for segment_id in w.segmenter.exchange(before, after, _changed_parts(w, before, after)):
            w.unsaved[segment_id] = None
        w.books.enter(after)
    for message in change.added:
        w.unsaved.update(dict.fromkeys(w.segmenter.take(message)))
        w.books.enter(message, created_by=plugin_name)


def _clear_sources(w: Workings, result: GCResult) -> None:
    for item in result.removal_list:
        if item.child_key is None:
            w.books.budget.clear(item.source)


def _first_change(messages: Sequence[Message], change: Change) -> int:
    """The place of the first message that is no longer what was sent before."""
    moved = {m.message_id for m in change.gone} | {m.message_id for m, _ in change.edited}
    places = (n for n, message in enumerate(messages) if message.message_id in moved)
    return next(places, len(messages))


def _age(w: Workings) -> None:
    """Count one more collection that everything still in the view has outlived."""
    age(w.heap, in_scope(w.heap, "major"), w.config.promote_after)


def _tell(w: Workings, result: GCResult) -> None:
    kind: EventKind = "collected" if result.success else "refused"
    w.events.emit(kind, number=len(w.results), result=result.to_dict())
    if result.success:
        w.events.emit("budget_updated", total_tokens=w.books.budget.total_tokens())


def _candidate(
    w: Workings, segment: ContextSegment, reason: str, action: Action
) -> PruningCandidate:
    now = w.clock()
    age_seconds = (now - segment.created_at).total_seconds()
    return PruningCandidate(
        segment_id=segment.segment_id,
        score=KeepScore(w.config.score_profile, dict(w.config.score_weights))(
            segment, ScoreContext(now=now, step=w.heap.step)
        ),
        tokens=segment.tokens or 0,
        reason=f"{reason}; {segment.type}, {age_text(age_seconds)} old",
        type=segment.type,
        age=age_seconds,
        action=action,
        bond=w.heap.bonds.group(segment),
    )
