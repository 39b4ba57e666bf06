"""gc_mark_sweep: what no root reaches leaves first, and what leaves can be recalled (the default).

Large tool results are evacuated: their live lines and a tombstone stay, so every call keeps its
result. Whole groups leave only when that is not enough. Superseded results go first, then unreachable ones,
then reachable ones with the least worth per token; roots never.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from msgspec import Meta
from msgspec.structs import replace

from ctxgc.collector import (
    NEWEST,
    OLD_NOTICE,
    PROBATION,
    Analysis,
    CollectionRun,
    GCTriggerReason,
    Host,
    PriceCollector,
    PricePlan,
    PriceRequest,
    RoomPass,
    WindowConstants,
    analyze,
    custom,
    handles_in,
    preset,
    root_knobs,
    window_constants,
)
from ctxgc.config import GCConfig
from ctxgc.core import EngineOptions, GCState, Message, RootKnobs
from ctxgc.economics import requests_to_pay_back
from ctxgc.strategies.builtin import BuiltinStrategy, StrategyOptions
from ctxgc.strategies.truncate import hold_turn_limit

T = TypeVar("T")

_DEFAULT_KNOBS = root_knobs(GCConfig.from_dict({}))  # GCConfig() would read the environment


class MarkSweepOptions(StrategyOptions, frozen=True, kw_only=True):
    """The options of this strategy beside those of all.

    `preset` says how eagerly to collect for the price alone, while the window is far from full:
    `default`, `lean` (saves more), `careful` (keeps more), `proven` (as `default`, on probation) or `off`.
    `probation` is for how many steps of the agent a collection for the price waits once it is planned, so
    that what is used meanwhile stays; unless it is given, `proven` waits and the others do not.
    `trim_calls` shortens the agent's own edits and dead to-do lists too; unless it is given, `lean` and
    `careful` do that and the others do not. `thin_numbers` shows only those line numbers of file views
    that it divides (10: every tenth), where the agent did not ask for lines by number; 0 shows all. Unless it
    is given, `lean` shows every tenth and the others all. `constants` takes the place of a preset's own, and
    `window_constants` of those by which room is made in a full window; both are for experiments.
    """

    preset: Literal["default", "lean", "careful", "proven", "off"] = "default"
    probation: Annotated[int, Meta(ge=0)] | None = None
    trim_calls: bool | None = None
    thin_numbers: Annotated[int, Meta(ge=0)] | None = None
    constants: dict[str, Any] | None = None
    window_constants: WindowConstants | None = None


class MarkSweepStrategy(BuiltinStrategy):
    """The engine at work on a history."""

    name: ClassVar[str] = "gc_mark_sweep"
    options: ClassVar[type[StrategyOptions]] = MarkSweepOptions

    def __init__(self) -> None:
        super().__init__()
        self.price_collector: PriceCollector | None = None
        """What collects for the price; made when it is first asked."""

    @property
    def own_options(self) -> MarkSweepOptions:
        """How to collect for the price alone, and by which constants for room."""
        options = self._options
        return options if isinstance(options, MarkSweepOptions) else MarkSweepOptions()

    def initialize(self, config: dict[str, Any] | None = None) -> None:
        """Take options; what is not given comes from GCConfig."""
        super().initialize(config)
        if self.own_options.constants is not None:
            custom(self.own_options.constants)
        self.price_collector = None

    def bind(self, host: Host) -> None:
        """Work with the services of a session."""
        super().bind(host)
        self.price_collector = None

    # -- for the price ------------------------------------------------------------------------------

    def saves_in(self, context_limit: int, *, is_tight: bool = False) -> bool:  # noqa: ARG002 - all
        """Return whether it collects for the price: in every window, unless that is switched off."""
        return self.own_options.preset != "off"

    def plan_for_price(self, request: PriceRequest) -> PricePlan:
        """Return what to leave out before a request."""
        if self.price_collector is None:
            self.price_collector = self._new_price_collector()
        return self.price_collector.plan(request)

    def settle(self, changed: Iterable[Message]) -> None:
        """Take messages for those that the last plan asked for."""
        if self.price_collector is not None:
            self.price_collector.settle(changed)

    def recount(self) -> None:
        """Forget the sizes of messages: the counter has learned."""
        if self.price_collector is not None:
            self.price_collector.recount()

    def forget_view(self) -> None:
        """Forget everything that was read."""
        if self.price_collector is not None:
            self.price_collector.reset()

    def _new_price_collector(self) -> PriceCollector:
        chosen, host = self.own_options, self._host
        is_proven = chosen.preset == "proven"
        named = "default" if is_proven else chosen.preset
        how = preset(named) if chosen.constants is None else custom(chosen.constants)
        if chosen.thin_numbers is not None:
            how = replace(how, thin_numbers=chosen.thin_numbers)
        usual = PROBATION if is_proven else 0
        return PriceCollector(
            how,
            host.prices,
            host.message_tokens,
            texts=host.texts,
            trims_calls=how.trims_calls if chosen.trim_calls is None else chosen.trim_calls,
            probation=usual if chosen.probation is None else chosen.probation,
            margin=(chosen.window_constants or window_constants()).work_margin,
        )

    # -- for room -----------------------------------------------------------------------------------

    def clear_notices(self, run: CollectionRun) -> None:
        """Take out earlier notices; a digest stays until there is a new one."""
        others = [m.message_id for m in run.old_notices() if not handles_in(m.text())]
        run.draft.remove_all(others, OLD_NOTICE, "old_notice")

    def shrink(self, run: CollectionRun) -> None:
        """Let one cover decide which lines of the results stay, then drop groups while that is not enough."""
        analysis = self._analyze(run)
        how = self.own_options.window_constants or window_constants()
        window = RoomPass(run, analysis, how, digests=self._notifies(run.config))
        window.make_room()
        run.digest_tokens = window.digest.tokens
        is_full = run.is_forced or run.above_hard_limit
        while is_full and not window.waits and window.drop_groups():
            run.digest_tokens = window.digest.tokens
        hold_turn_limit(run)
        run.digest = window.digest.close()
        self._price(run)
        if ghosts := window.ghosts():
            run.details["ghosts"] = ghosts

    def _analyze(self, run: CollectionRun) -> Analysis:
        config = run.config
        state = self._host.gc_state(run.history)
        task = root_knobs(config, run.usage.get("context_limit"), run.target).task_tokens
        knobs = replace(self._reach(run), task_tokens=task)
        held, let_go = self._work(state)
        state = replace(state, knobs=knobs, held={**state.held, **held}, let_go=let_go)
        options = EngineOptions(profile=config.score_profile, weights=dict(config.score_weights))
        return analyze(state, options)

    def _work(self, state: GCState) -> tuple[dict[str, str], dict[str, tuple[str, int]]]:
        """Return what the running work holds and what it has let go, of the results read for the price."""
        if self.price_collector is None:
            return {}, {}
        work, now = self.price_collector, state.request + 1
        return self._by_segment(work.in_work(now)), self._by_segment(work.let_go(now))

    def _by_segment(self, found: Mapping[tuple[str, int], T]) -> dict[str, T]:
        """Return what was found about parts of messages by their segments."""
        ids = {message_id: self._host.segment_ids(message_id) for message_id, _ in found}
        return {ids[m][part]: said for (m, part), said in found.items() if part < len(ids[m])}

    def _reach(self, run: CollectionRun) -> RootKnobs:
        """Return how far the root rules reach: as configured, and by default less far to make room.

        Who collects by hand, or set the rules, gets them as they are while that fits the window at all.
        """
        knobs = root_knobs(run.config)
        chosen = run.reason is GCTriggerReason.MANUAL or knobs != _DEFAULT_KNOBS
        if chosen and not run.above_hard_limit:
            return knobs
        return replace(
            knobs,
            recent_messages=min(knobs.recent_messages, NEWEST),
            recent_user_messages=min(knobs.recent_user_messages, 1),
            recent_files=0,
            unresolved_errors=1,
        )

    def _price(self, run: CollectionRun) -> None:
        """Say what the collection wins, what it re-writes, and when it has paid for itself."""
        moved = [i for item in run.draft.items() for i in item.message_ids]
        if not moved:
            return
        ids = [message.message_id for message in run.history]
        first = ids.index(moved[0]) if moved[0] in ids else 0
        won = sum(item.tokens_freed for item in run.draft.items())
        rewritten = sum(run.draft.size(message_id) for message_id in ids[first:])
        details: dict[str, Any] = {
            "tokens_won": won,
            "tokens_rewritten": rewritten,
            "requests_to_pay_back": requests_to_pay_back(won, rewritten, self._host.prices),
        }
        run.details.update(details)
