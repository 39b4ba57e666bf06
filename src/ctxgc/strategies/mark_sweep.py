"""gc_mark_sweep: what no root reaches leaves first, and what leaves can be recalled (the default).

Large tool results are evacuated: their live lines and a tombstone stay, so every call keeps its
result. Whole groups leave only when that is not enough. Superseded and unreachable results go first,
then reachable ones with the lowest keep_score; roots never.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from msgspec.structs import replace

from ctxgc.collector import (
    NEWEST,
    OLD_NOTICE,
    Analysis,
    CollectionRun,
    GCTriggerReason,
    RoomPass,
    WindowConstants,
    analyze,
    handles_in,
    root_knobs,
    window_constants,
)
from ctxgc.config import GCConfig
from ctxgc.core import ContextSegment, EngineOptions, RootKnobs
from ctxgc.economics import requests_to_pay_back
from ctxgc.strategies.builtin import BuiltinStrategy, StrategyOptions
from ctxgc.strategies.truncate import hold_turn_limit

_DEFAULT_KNOBS = root_knobs(GCConfig.from_dict({}))  # GCConfig() would read the environment


class MarkSweepOptions(StrategyOptions, frozen=True, kw_only=True):
    """The options of this strategy beside those of all.

    `preset` says how eagerly to collect for the price alone, while the window is far from full:
    `default`, `lean` (saves more), `careful` (keeps more) or `off`. `trim_calls` shortens the agent's
    own edits and dead to-do lists too; unless it is given, `lean` and `careful` do that and `default`
    does not. `constants` takes the place of a preset's own, and `window_constants` of those by which
    room is made in a full window; both are for experiments.
    """

    preset: Literal["default", "lean", "careful", "off"] = "default"
    trim_calls: bool | None = None
    constants: dict[str, Any] | None = None
    window_constants: WindowConstants | None = None


class MarkSweepStrategy(BuiltinStrategy):
    """The engine at work on a history."""

    name: ClassVar[str] = "gc_mark_sweep"
    options: ClassVar[type[StrategyOptions]] = MarkSweepOptions

    @property
    def thrift(self) -> MarkSweepOptions:
        """How to collect for the price alone, and by which constants for room."""
        options = self._options
        return options if isinstance(options, MarkSweepOptions) else MarkSweepOptions()

    def clear_notices(self, run: CollectionRun) -> None:
        """Take out earlier notices; a digest stays until there is a new one."""
        others = [m.message_id for m in run.old_notices() if not handles_in(m.text())]
        run.draft.remove_all(others, OLD_NOTICE)

    def shrink(self, run: CollectionRun) -> None:
        """Let one cover decide which lines of the results stay, then drop groups while that is not enough."""
        analysis = self._analyze(run)
        how = self.thrift.window_constants or window_constants()
        window = RoomPass(run, analysis, how, digests=self._notifies(run.config))
        window.make_room()
        run.digest_tokens = window.digest.tokens
        while (run.is_forced or run.above_hard_limit) and self._drop_groups(run, analysis):
            run.digest_tokens = window.digest.tokens
        hold_turn_limit(run)
        run.digest = window.digest.close()
        self._price(run)
        if ghosts := window.ghosts():
            run.details["ghosts"] = ghosts

    def _analyze(self, run: CollectionRun) -> Analysis:
        config = run.config
        state = self._host.gc_state(run.history)
        knobs = replace(self._reach(run), task_tokens=state.knobs.task_tokens)
        state = replace(state, knobs=knobs)
        options = EngineOptions(profile=config.score_profile, weights=dict(config.score_weights))
        return analyze(state, options)

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

    def _drop_groups(self, run: CollectionRun, analysis: Analysis) -> bool:
        """Drop whole groups, least worth first, those of the recent turns last; tell whether any left."""
        if run.excess <= 0:
            return False
        ranked = sorted(
            (_worth(run, analysis, group), group)
            for group in run.groups
            if not _has_root(run, analysis, group)
            and run.draft.get(run.ids(group)[0]) is not None
            and run.history[group[0]].origin != "gc_notice"
        )
        dropped = False
        for spare_recent in (True, False):
            for (reachable, _, _), group in ranked:
                ids = run.ids(group)
                if run.excess <= 0:
                    return dropped
                if spare_recent and any(message_id in run.protected for message_id in ids):
                    continue
                run.draft.remove_all(ids, "low_score" if reachable else "unreachable")
                dropped = True
        return dropped

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


def _has_root(run: CollectionRun, analysis: Analysis, group: tuple[int, ...]) -> bool:
    return any(
        message_id in run.roots
        or any(s in analysis.roots for s in run.host.segment_ids(message_id))
        for message_id in run.ids(group)
    )


def _worth(
    run: CollectionRun, analysis: Analysis, group: tuple[int, ...]
) -> tuple[bool, float, int]:
    """Reachable groups after unreachable ones; then by the score of their most valuable part."""
    segments: list[ContextSegment] = []
    for message_id in run.ids(group):
        for segment_id in run.host.segment_ids(message_id):
            segment = analysis.state.heap.peek(segment_id)
            if segment is not None:
                segments.append(segment)
    reachable = any(analysis.is_reachable(s.segment_id) for s in segments)
    score = max((analysis.scores.get(s.segment_id, 0.0) for s in segments), default=0.0)
    return (reachable, score, group[0])
