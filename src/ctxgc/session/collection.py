"""Collections, to make room and for the price: when they are due, what leaves, and what becomes of it.

`SessionHost` is what a strategy may ask of its session. `Collector` asks the strategy when one is due or
wanted, checks its proposal, applies it, and can plan or undo one. `PricePass` cuts, before a request and
while the window is far from full, what costs more to keep than to move.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any

from msgspec.structs import replace

from ctxgc.budget import InstructionSource
from ctxgc.collector import (
    Billing,
    Certificate,
    Edit,
    GCRemovalItem,
    GCResult,
    GCTriggerReason,
    Host,
    PriceRequest,
    plan_of,
)
from ctxgc.config import mask_text
from ctxgc.core import (
    Action,
    ContextSegment,
    Evidence,
    GCState,
    KeepScore,
    Message,
    PruningPlan,
    Scope,
    age,
    checked_target,
    in_scope,
    recall_call,
)
from ctxgc.economics import requests_to_pay_back
from ctxgc.errors import PlanError
from ctxgc.invariants import check, first_difference
from ctxgc.session.apply import ViewEditor
from ctxgc.session.archive import Applied
from ctxgc.session.calls import EventKind
from ctxgc.session.part import SessionCore, SessionPart
from ctxgc.session.plugin_check import (
    Bounds,
    CheckedProposal,
    apply_beside,
    left_beside,
    run_plugin,
    true_items,
)
from ctxgc.session.recall import ProtectedMessages, RecallFeedback, gc_state
from ctxgc.session.usage import ContextUsage, RequestLog, UsageMeter
from ctxgc.session.view import PRICE_READER, HistoryChange, compare, in_memory, turn_count
from ctxgc.stores import Put
from ctxgc.strategies import CollectsForPrice, GCPlugin, NoneStrategy
from ctxgc.wire import PartTexts

STUCK_SHARE = 0.01
LEAST_SHARE = 0.10


@contextmanager
def cycles_paused() -> Iterator[None]:
    """Disable Python's cyclic garbage collector inside the block and restore it afterwards."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class SessionHost(Host):
    """The services of a session that a strategy works with."""

    def __init__(self, core: SessionCore, *, texts: PartTexts) -> None:
        options = core.options
        super().__init__(
            core.accounting.counter, options.prices, texts,
            model=options.model, recall_call=options.recall_call,
        )  # fmt: skip
        self._core = core

    def message_tokens(self, message: Message) -> int:
        """Return the tokens of a message."""
        return self._core.accounting.tokens(message)

    def next_summary_id(self) -> str:
        """Return `gc_summary_N` with a number that was never used before."""
        self._core.state.summaries += 1
        return f"gc_summary_{self._core.state.summaries}"

    def gc_state(self, history: list[Message]) -> GCState:  # noqa: ARG002 - the heap has it already
        """Return the heap with task, active file and time."""
        return gc_state(self._core)

    def groups(self, history: list[Message]) -> list[tuple[int, ...]]:
        """Return the places of the messages that live and die together, oldest first."""
        return self._core.view.groups_of(history)

    def segment_ids(self, message_id: str) -> tuple[str, ...]:
        """Return the segments of a message, one for each of its parts."""
        return self._core.segmenter.segment_ids(message_id)

    def request_of(self, message_id: str) -> int | None:
        """Return the request that first carried a message; None if that is not known."""
        arrival = self._core.view.arrival_of(message_id)
        return None if arrival is None or not self._core.state.requests else arrival.request

    def handle(self, segment_id: str) -> str:
        """Return the handle that recalls a segment once it is stashed."""
        return self._core.stash.recall_handle(segment_id)


class Collector(SessionPart):
    """Runs the strategy, applies what it proposes, and undoes that."""

    def __init__(
        self,
        core: SessionCore,
        *,
        meter: UsageMeter,
        protected: ProtectedMessages,
        editor: ViewEditor,
        feedback: RecallFeedback,
    ) -> None:
        super().__init__(core)
        self._meter = meter
        self._protected = protected
        self._editor = editor
        self._feedback = feedback

    # -- when it is due -----------------------------------------------------------------------------

    def collect_if_due(self) -> GCResult | None:
        """Collect when the strategy says so, or when the hard limit is reached before a request."""
        config, plugin = self._options.config, self._options.plugin
        if not config.auto_trigger:
            return None
        usage = self._meter.usage()
        if self._holds_too_many_turns(usage):
            config = config.replace(max_turns=None)
        is_full = usage.percent_used >= config.hard_limit_percent
        try:
            due, reason = plugin.should_collect(usage, config)
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            said = mask_text(f"should_collect raised {type(error).__name__}: {error}")
            self._events.emit("refused", plugin=plugin.name, error=said)
            due, reason = False, None
        if not due and is_full:
            due, reason = True, GCTriggerReason.PRE_MESSAGE
        if due and reason is GCTriggerReason.TURN_LIMIT:
            return self.collect(reason)
        # If the user undid a collection, do not evict something else instead.
        left_alone = self._state.undone.left_alone(self._state.requests) and not is_full
        if not due or left_alone or self._is_stuck():
            return None
        return self._make_room(usage, reason or GCTriggerReason.THRESHOLD)

    def _holds_too_many_turns(self, usage: ContextUsage) -> bool:
        """Return whether the limit of turns could not be kept, and no turn has come in since."""
        limit, results = self._options.config.max_turns, self._log.results
        if limit is None or not results:
            return False
        tried = results[-1].trigger_reason is GCTriggerReason.TURN_LIMIT
        return tried and 0 < usage.turns - limit <= results[-1].turns_over

    def _is_stuck(self) -> bool:
        """Return whether the strategy could not help and the context has hardly grown since."""
        budget, stuck_at = self._accounting.budget, self._state.stuck_at
        # What does not fit cannot wait: the step that filled the window may not be the last one any more.
        if stuck_at is None or budget.total_tokens() > budget.context_limit:
            return False
        return budget.total_tokens() < stuck_at + STUCK_SHARE * budget.context_limit

    def _make_room(self, usage: ContextUsage, reason: GCTriggerReason) -> GCResult:
        """Collect to the usual target, or deeper if collections would otherwise follow each other."""
        usual = usage.target_tokens
        with self._state.rollback_on_error():
            depth = self._state.thrashing.take_depth()
            deeper = None if depth == 1 else int(depth * usual)
            result = self.collect(reason, deeper, promised=usual)
        if not result.tokens_freed:
            self._state.thrashing.give_back_depth(depth)
        else:
            won = result.tokens_freed / usage.context_limit
            self._feedback.report(self._state.thrashing.note_room(self._state.requests, won))
        return result

    # -- collecting ---------------------------------------------------------------------------------

    def collect(
        self,
        reason: GCTriggerReason,
        target_tokens: int | None = None,
        *,
        promised: int | None = None,
        plugin: GCPlugin | None = None,
    ) -> GCResult:
        """Run the strategy, or another `plugin`, and apply what it proposes.

        A shortfall is measured by the target, or by what was `promised` where the target is deeper.
        Nothing is recorded of `gc_none`, which never collects.

        Raises:
            StoreError: what would leave could not be made durable; nothing has changed.
        """
        with cycles_paused(), self._state.rollback_on_error():
            plugin = self._options.plugin if plugin is None else plugin
            return self._collect(plugin, reason, target_tokens, promised)

    def _collect(
        self,
        plugin: GCPlugin,
        reason: GCTriggerReason,
        target_tokens: int | None,
        promised: int | None,
    ) -> GCResult:
        proposal = self._propose(plugin, reason, target_tokens, is_usual=promised is not None)
        result = proposal.result
        if plugin.name == NoneStrategy.name:
            return result
        if promised is not None:
            result.shortfall = max(0, result.tokens_after - promised)
        if reason is GCTriggerReason.MANUAL:
            self._state.undone.clear()
        pays = result.tokens_freed >= self._least_gain(reason)
        asked = reason is GCTriggerReason.MANUAL or self._keeps_turn_limit(proposal)
        # Re-writing the cached prefix for next to nothing would cost more than it saves.
        if not (pays or asked or not result.shortfall):
            proposal = _without_progress(proposal, self._view.messages)
        proposal.result.turns_over = self._turns_over(proposal.history)
        proposal.result.certificate = self._ended_probation(proposal)
        self._carry_out(proposal)
        is_done = pays and not result.shortfall
        self._state.stuck_at = None if is_done else self._accounting.budget.total_tokens()
        return proposal.result

    def _ended_probation(self, proposal: CheckedProposal) -> Certificate | None:
        """Return what is known of the plan that waited for its steps and does not any more."""
        plan = self._state.probation
        if plan is None or not proposal.change:
            return None
        left = dict.fromkeys(i for item in proposal.result.removal_list for i in item.message_ids)
        is_manual = proposal.result.trigger_reason is GCTriggerReason.MANUAL
        why = "by hand" if is_manual else "room"
        return plan.certificate(self._state.requests + 1, left, at_once=why)

    def _turns_over(self, messages: Sequence[Message]) -> int:
        """Return how many turns are above the limit of turns."""
        limit = self._options.config.max_turns
        return 0 if limit is None else max(0, turn_count(messages) - limit)

    def _keeps_turn_limit(self, proposal: CheckedProposal) -> bool:
        """Return whether there are fewer turns above their limit than before."""
        return self._turns_over(proposal.history) < self._turns_over(self._view.messages)

    def impose(
        self,
        new: list[Message],
        who: str,
        *,
        reason: GCTriggerReason = GCTriggerReason.CONTEXT_LIMIT,
        scope: Scope | None = "major",
        details: dict[str, Any] | None = None,
        evidence: Mapping[str, Evidence] | None = None,
        certificate: Certificate | None = None,
    ) -> GCResult:
        """Show a smaller view that no plugin proposed, recorded like a collection: it can be undone.

        What was in its scope and stays counts as having survived a collection; nothing does without one.

        Raises:
            StoreError: what would leave could not be made durable; nothing has changed.
        """
        change = compare(self._view.messages, new)
        budget = self._accounting.budget
        before = budget.total_tokens()
        declared = [_item(message_id, why) for message_id, why in (evidence or {}).items()]
        items = true_items(declared, change, budget, self._accounting.tokens, otherwise=who)
        result = GCResult(
            success=True,
            items_collected=len(items),
            tokens_before=before,
            tokens_after=before - sum(item.tokens_freed for item in items),
            plugin_name=who,
            trigger_reason=reason,
            details=details or {},
            removal_list=items,
            certificate=certificate,
        )
        self._carry_out(CheckedProposal(history=new, change=change, result=result), scope)
        return result

    def _least_gain(self, reason: GCTriggerReason) -> float:
        """What a collection that misses its target must at least free: little once the limit is near."""
        budget = self._accounting.budget
        hard = budget.utilization() >= self._options.config.hard_limit_percent
        forced = hard or reason in (GCTriggerReason.CONTEXT_LIMIT, GCTriggerReason.PRE_MESSAGE)
        return (STUCK_SHARE if forced else LEAST_SHARE) * budget.context_limit

    def _propose(
        self,
        plugin: GCPlugin,
        reason: GCTriggerReason,
        target_tokens: int | None,
        *,
        is_usual: bool = False,
    ) -> CheckedProposal:
        """Return what a strategy would do now; a target that `is_usual` is like that of the configuration."""
        config = self._options.config
        if target_tokens is not None:
            checked_target(target_tokens)
            if is_usual:
                share = target_tokens / self._accounting.budget.context_limit
                config = config.replace(target_percent=100 * share)
        # Turns were pinned by their ids as they came in; their numbers may have moved since.
        if config.pinned_turn_indices:
            config = config.replace(pinned_turn_indices=())
        return run_plugin(
            plugin,
            self._view.paired(),
            self._meter.usage(target_tokens),
            config,
            reason,
            budget=self._accounting.budget,
            bounds=Bounds(
                tokens=self._accounting.tokens,
                must_stay=self._protected.reasons(target_tokens),
                binds=self._thinking.is_bound,
            ),
        )

    def _carry_out(self, proposal: CheckedProposal, scope: Scope | None = "major") -> None:
        """Make a proposal durable, then real, and report its result."""
        result = proposal.result
        described = result.to_dict()
        if proposal.change or self._left_beside(result):
            self._apply(proposal, described, scope)
        else:
            self._archive.later(Put("collections", self._log.next_key, {"result": described}))
        apply_beside(result.removal_list, self._accounting.budget)
        self._log.results.append(result)
        kind: EventKind = "collected" if result.success else "refused"
        self._events.emit(kind, number=len(self._log.results), result=described)
        if result.success:
            total = self._accounting.budget.total_tokens()
            self._events.emit("budget_updated", total_tokens=total)

    def _apply(
        self, proposal: CheckedProposal, described: dict[str, Any], scope: Scope | None
    ) -> None:
        """Show the history of a proposal, durably, so that it can be undone."""
        state, record = self._state, self._record_of(proposal.change, proposal.result)
        if state.thrash:
            proposal.result.details["thrashing"] = state.thrash
            described["details"]["thrashing"] = state.thrash
        doc = {"result": described, **record.to_doc(self._view.originals)}
        light = self._archive.lighter(record)
        self._editor.apply(
            proposal.history,
            proposal.change,
            "collection",
            created_by=proposal.result.plugin_name,
            more=[Put("collections", record.key, doc)],
        )
        state.thrash = {}
        state.thrashing.note_left((m.message_id for m in record.before), state.requests)
        self._log.applied.append(light)
        if scope is not None:
            age(self._heap, in_scope(self._heap, scope), self._options.config.promote_after)

    def _left_beside(self, result: GCResult) -> tuple[tuple[str, str], ...]:
        return left_beside(result.removal_list, self._accounting.budget)

    def _record_of(self, change: HistoryChange, result: GCResult) -> Applied:
        return Applied(
            number=len(self._log.results) + 1,
            before=(*change.gone, *(before for before, _ in change.edited)),
            added=tuple(m.message_id for m in change.added),
            places={
                m.message_id: self._view.place_of(m.message_id)
                for m in change.gone
                if m.origin == "gc_notice"
            },
            alongside=self._left_beside(result),
        )

    # -- undoing ------------------------------------------------------------------------------------

    def undo(self) -> None:
        """Make the view what it was before the last collection, with what came in since.

        Schemas and enrichment that it took out are sent again, unless the host has ended them.
        For a while nothing of it is collected again for the price, nor is room made before the hard limit.

        Raises:
            PlanError: there is no collection to undo, or the view would be invalid without it.
            StoreError: it could not be made durable; nothing has changed.
        """
        if not self._log.applied:
            raise PlanError("there is no collection to undo", hint="look at gc_history")
        record, state = self._log.applied[-1], self._state
        doc = self._archive.store.get(self._archive.session_id, "collections", record.key) or {}
        kept = {name: value for name, value in doc.items() if name == "result"}
        new = self._without(record)
        with state.rollback_on_error():
            state.undone = copy(state.undone)
            names = (*(m.message_id for m in record.before), *(key for _, key in record.alongside))
            state.undone.note(names, state.requests)
            self._editor.show_again(new, "undo", more=[Put("collections", record.key, kept)])
        self._log.applied.pop()
        self._accounting.alongside.send_again(record.alongside)
        self._events.emit("undone", number=record.number)

    def _without(self, record: Applied) -> list[Message]:
        """The view as it would be without a collection.

        What a restore has taken out since stays out, where it cannot come back without its neighbours.
        """
        here, bring = {m.message_id for m in self._view.messages}, self._to_bring_back(record)
        for messages in (bring, [m for m in bring if m.message_id in here]):
            back = self._view.with_messages(messages)
            new = [m for m in back if m.message_id not in record.added]
            if not check(new, complete=False):
                break
        return new

    def _to_bring_back(self, record: Applied) -> list[Message]:
        """The messages that the collection moved and that nothing brought back since."""
        here = {m.message_id for m in self._view.messages}
        originals = self._view.originals
        as_it_came = here - originals.keys()
        return [
            in_memory(m)
            for m in record.before
            if m.message_id not in as_it_came
            and (m.message_id in originals or m.origin == "gc_notice")
        ]

    # -- planning -----------------------------------------------------------------------------------

    def plan(self, target_tokens: int | None) -> PruningPlan:
        """Return what a collection would do, as a plan; nothing changes."""
        summaries, numbered = self._state.summaries, self._segmenter.numbered
        proposal = self._propose(self._options.plugin, GCTriggerReason.MANUAL, target_tokens)
        result = proposal.result
        state, config = gc_state(self._core), self._options.config
        score = KeepScore(config.score_profile, dict(config.score_weights))
        made = plan_of(result, self._leaving(proposal.change), state, score)
        self._state.summaries, self._segmenter.numbered = summaries, numbered
        return made

    def _leaving(self, change: HistoryChange) -> list[tuple[ContextSegment, Action]]:
        """The segments that would leave the working tier, and how."""
        found: list[tuple[ContextSegment, Action]] = []
        for move in self._editor.moves(change):
            found += [(self._heap.get(i), "stash") for i in move.stashed]
            if move.exchange is not None:
                replaced = [str(stand_in.derived_from) for stand_in in move.exchange.made]
                left = (*replaced, *move.exchange.dropped)
                found += [(self._heap.get(i), "evacuate") for i in left]
        return found


def _item(message_id: str, evidence: Evidence) -> GCRemovalItem:
    source = InstructionSource.CONVERSATION
    return GCRemovalItem(source, message_id, 0, str(evidence), (message_id,), evidence)


def _without_progress(proposal: CheckedProposal, view: list[Message]) -> CheckedProposal:
    """Return a proposal to leave the view as it is, because this one would free too little."""
    result = proposal.result
    if result.success and result.removal_list:
        result = replace(
            result,
            items_collected=0,
            tokens_after=result.tokens_before,
            removal_list=[],
            notification=None,
            details={"no_progress": f"only {result.tokens_freed} tokens could be freed"},
            shortfall=result.shortfall + result.tokens_freed,
        )
    unchanged = HistoryChange(gone=[], edited=[], added=[])
    return CheckedProposal(history=view, change=unchanged, result=result)


# -- The price pass: while the window is far from full, collect what costs more to keep than to move


class PricePass(SessionPart):
    """Collects for the price alone; does nothing if the strategy or the window does not call for it."""

    def __init__(
        self,
        core: SessionCore,
        *,
        requests: RequestLog,
        protected: ProtectedMessages,
        editor: ViewEditor,
        collector: Collector,
    ) -> None:
        super().__init__(core)
        self._requests = requests
        self._protected = protected
        self._editor = editor
        self._collector = collector

    def is_on(self) -> bool:
        """Return whether the strategy collects for the price in a window of this size.

        Without a way to recall, nothing leaves for the price alone.
        """
        plugin, limit = self._options.plugin, self._accounting.budget.context_limit
        can_recall = self._options.recall_call is not None
        return can_recall and isinstance(plugin, CollectsForPrice) and plugin.saves_in(limit)

    def recount(self) -> None:
        """Forget the sizes of messages, after the counter has learned."""
        if isinstance(plugin := self._options.plugin, CollectsForPrice):
            plugin.recount()

    def cut_for_price(self) -> GCResult | None:
        """Leave out what the view shows twice, and collect what costs more to keep than to re-write.

        Raises:
            StoreError: what would leave could not be made durable; nothing has changed.
        """
        plugin, config = self._options.plugin, self._options.config
        if not isinstance(plugin, CollectsForPrice) or not config.auto_trigger:
            return None
        if self._options.recall_call is None and not self._need():
            return None
        if not plugin.saves_in(self._accounting.budget.context_limit, is_tight=self._is_tight()):
            return None
        try:
            return self._cut(plugin)
        except BaseException:
            plugin.forget_view()
            raise

    def _is_tight(self) -> bool:
        """Return whether the window is fuller than the soft limit: small steps are taken from there on."""
        soft = self._options.config.soft_limit_percent
        return self._accounting.budget.utilization() >= soft

    def _need(self) -> int:
        """Return how many tokens must leave: none below the threshold of collections that make room."""
        budget, config = self._accounting.budget, self._options.config
        if budget.utilization() < config.threshold_percent:
            return 0
        target = int(budget.context_limit * config.target_percent / 100)
        return max(0, budget.total_tokens() - target)

    def _over(self) -> int:
        """Return how many tokens are above the hard limit."""
        budget, hard = self._accounting.budget, self._options.config.hard_limit_percent
        return max(0, budget.total_tokens() - int(budget.context_limit * hard / 100))

    def _cut(self, strategy: CollectsForPrice) -> GCResult | None:
        request = self._request()
        plan = strategy.plan_for_price(request)
        self._view.note_seen(PRICE_READER)
        if not plan.copies and not plan.cuts:
            self._state.probation = plan.probation
            return None
        new = self._thinking.strip_edited(plan.view)
        result = None
        if plan.cuts:
            result = self._collector.impose(
                new, self._options.plugin.name, scope="minor",
                reason=GCTriggerReason.THRESHOLD if request.need else GCTriggerReason.PRE_MESSAGE,
                details=self._details(new, plan.cuts) | _ghosts(plan.held),
                evidence={edit.message_id: edit.evidence for edit in (*plan.copies, *plan.cuts)},
                certificate=plan.certificate,
            )  # fmt: skip
        else:
            self._editor.apply(new, compare(self._view.messages, new), "copies")
            ids = [edit.message_id for edit in plan.copies]
            self._events.emit("deduplicated", message_ids=ids)
        strategy.settle(self._view.messages[self._view.seen_by(PRICE_READER) :])
        self._state.probation = plan.probation
        return result

    def _request(self) -> PriceRequest:
        state, requests = self._state, self._requests
        unpruned, warm = requests.unpruned_tokens(), not requests.is_cold()
        return PriceRequest(
            view=self._view.messages,
            sent=state.sent_messages,
            same=self._view.seen_by(PRICE_READER),
            number=state.requests + 1,
            context_limit=self._accounting.budget.context_limit,
            is_tight=self._is_tight(),
            batch=self._options.config.batch,
            need=self._need(),
            over=self._over(),
            is_paused=state.thrashing.is_paused(state.requests),
            masks=self._options.config.secrets == "mask",
            born=self._born,
            books=Billing(
                bill=state.savings.savings.bill,
                unpruned_bill=state.savings.unpruned_bill(unpruned, warm=warm),
                beside=self._accounting.beside_tokens(),
                is_cold=requests.is_cold(),
            ),
            untouchable=self._protected.held_while_there_is_room()
            | state.undone.left_alone(state.requests),
            recall=self._recall_call,
            can_recall=self._options.recall_call is not None,
            ghost=self._ghost if state.ghosts.any_left(state.requests) else None,
            probation=state.probation,
        )

    def _born(self, message_id: str) -> int:
        arrival = self._view.arrival_of(message_id)
        return self._state.requests + 1 if arrival is None else arrival.request

    def _ghost(self, message_id: str, part: int) -> float:
        segment = self._heap.get(self._segmenter.segment_ids(message_id)[part])
        return self._state.ghosts.weight(segment, self._state.requests)

    def _recall_call(self, message_id: str, part: int) -> str:
        """Return the call that recalls a part; inside a session a segment's own id will do as handle."""
        if self._options.recall_call is None:
            return ""
        segment_id = self._segmenter.segment_ids(message_id)[part]
        original = self._heap.get(segment_id).derived_from or segment_id
        return recall_call(original, self._options.recall_call)

    def _details(self, new: Sequence[Message], cut: Sequence[Edit]) -> dict[str, object]:
        """Say what the collection saves, what it re-writes, and when it has paid for itself.

        Only what the provider has cached is written anew; what was never sent has to be written anyway.
        """
        now, tokens = self._view.messages, self._accounting.tokens
        first = first_difference(now, new)
        cached = 0 if self._requests.is_cold() else self._state.sent_messages
        won = max(0, sum(map(tokens, now[first:])) - sum(map(tokens, new[first:])))
        rewritten = sum(map(tokens, new[first:cached]))
        return {
            "tokens_won": won,
            "tokens_rewritten": rewritten,
            "requests_to_pay_back": requests_to_pay_back(won, rewritten, self._options.prices),
            "why": {edit.message_id: str(edit.evidence) for edit in cut},
        }


def _ghosts(held: Mapping[str, float]) -> dict[str, object]:
    """Say what stayed only because something similar was recalled before."""
    return {"ghosts": {name: round(weight, 2) for name, weight in held.items()}} if held else {}
