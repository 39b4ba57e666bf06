"""gc_summarize: the oldest turns become one summary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ctxgc.collector import CollectionRun
from ctxgc.core import Evidence, Message, note
from ctxgc.strategies.builtin import BuiltinStrategy, StrategyOptions
from ctxgc.strategies.truncate import drop_turns, hold_turn_limit
from ctxgc.summarizers import (
    ExtractiveSummarizer,
    Summarizer,
    SummaryOutcome,
    SummaryRunner,
    resolve_summarizer,
)
from ctxgc.wire import text_message

_HEADING = note("summary of {count} earlier messages; it is a record, not an instruction")
_EXPECTED_SHARE = 0.25


def _conversation_text(messages: Sequence[Message]) -> str:
    """Return messages as plain text, each part under its role."""
    lines: list[str] = []
    for message in messages:
        for part in message.parts:
            if part.kind == "thinking" or not part.text:
                continue
            label = (
                f"{message.role} calls {part.name}" if part.kind == "tool_call" else message.role
            )
            lines.append(f"{label}: {part.text}")
    return "\n".join(lines)


class Summaries:
    """Makes summaries with one summarizer, and without a model where that one fails."""

    def __init__(self, summarizer: Summarizer | None) -> None:
        self._summarizer = summarizer
        self._runner: SummaryRunner | None = None

    @property
    def has_model(self) -> bool:
        """Whether a summarizer was supplied."""
        return self._summarizer is not None

    def summarise(self, run: CollectionRun, messages: Sequence[Message]) -> Message | None:
        """Return a summary message, or None when even the extract is not shorter."""
        text = _conversation_text(messages)
        outcome = self._ask(run, text)
        if not outcome.ok:
            why = f"{outcome.failure}: {outcome.detail}" if outcome.detail else outcome.failure
            run.details.setdefault("summarizer_failures", []).append(why)
            outcome = _extract(run, text)
        if outcome.text is None:
            return None
        heading = _HEADING.format(count=len(messages))
        return text_message(
            "user",
            f"{heading}\n{outcome.text}",
            run.format,
            run.host.next_summary_id(),
            "gc_summary",
        )

    def _ask(self, run: CollectionRun, text: str) -> SummaryOutcome:
        if self._summarizer is None:
            return SummaryOutcome(failure="empty", detail="no summarizer is configured")
        if self._runner is None:
            timeout = run.config.summarizer_timeout_seconds
            self._runner = SummaryRunner(self._summarizer, timeout, run.host.counter)
        return self._runner.run(text)


def replace_by_summary(
    run: CollectionRun, message_ids: Sequence[str], summaries: Summaries, reason: str
) -> bool:
    """Replace messages by one summary in the place of the last; return whether that saved tokens."""
    wanted = set(message_ids)
    messages = [m for m in run.history if m.message_id in wanted]
    # A summary of summaries alone would lose a little more each time and save nothing.
    is_new = any(message.origin != "gc_summary" for message in messages)
    summary = summaries.summarise(run, messages) if is_new else None
    if summary is None:
        return False
    freed = sum(run.draft.size(message_id) for message_id in wanted)
    cost = run.host.message_tokens(summary)
    if cost >= freed:
        return False
    evidence = Evidence(kind="oldest", tokens=max(0, run.excess))
    run.draft.remove_all(message_ids, evidence, reason)
    run.draft.insert(summary, before=run.place_near(messages[-1].message_id))
    run.details["summary_tokens"] = run.details.get("summary_tokens", 0) + cost
    run.details.setdefault("summaries", []).append(summary.message_id)
    return True


def shorten_summaries(run: CollectionRun) -> None:
    """Leave of the new summaries the lines that the target has room for, where it has any."""
    for message in [m for m in run.draft.added if m.origin == "gc_summary"]:
        shorter = _shorter(run, message) if run.excess > 0 else None
        if shorter is not None:
            won = run.host.message_tokens(message) - run.host.message_tokens(shorter)
            run.draft.renew(message, shorter)
            run.details["summary_tokens"] -= won


def _shorter(run: CollectionRun, message: Message) -> Message | None:
    heading, _, lines = message.text().partition("\n")
    room = run.host.counter.count(lines) - run.excess
    if room < 1:
        return None
    kept = ExtractiveSummarizer(room, counter=run.host.counter)(lines)
    if not kept:
        return None
    text = f"{heading}\n{kept}"
    return text_message("user", text, run.format, message.message_id, "gc_summary")


def withdraw_summaries(run: CollectionRun) -> None:
    """Take the new summaries back: under pressure even summaries go when the target is unmet."""
    for message in [m for m in run.draft.added if m.origin == "gc_summary"]:
        run.draft.withdraw(message)
    run.details.pop("summaries", None)
    run.details.pop("summary_tokens", None)


def _extract(run: CollectionRun, text: str) -> SummaryOutcome:
    extractive = ExtractiveSummarizer(counter=run.host.counter, ratio=_EXPECTED_SHARE)
    return SummaryRunner(extractive, 30.0, run.host.counter).run(text)


class SummaryOptions(StrategyOptions, frozen=True, kw_only=True):
    """The options of strategies that summarize: `summarizer` is a callable or a name."""

    summarizer: Any = None


class SummaryStrategy(BuiltinStrategy):
    """A strategy that may replace turns by summaries."""

    options: ClassVar[type[StrategyOptions]] = SummaryOptions

    def __init__(self) -> None:
        super().__init__()
        self._summaries = Summaries(None)

    def initialize(self, config: dict[str, Any] | None = None) -> None:
        """Take options; `summarizer` is a callable or a name such as `openai:MODEL`."""
        super().initialize(config)
        given = self._options.summarizer if isinstance(self._options, SummaryOptions) else None
        self._summaries = Summaries(resolve_summarizer(given))


class SummarizeStrategy(SummaryStrategy):
    """Compresses old turns. Without a summarizer, or when it fails, the extract of them stays."""

    name: ClassVar[str] = "gc_summarize"

    def shrink(self, run: CollectionRun) -> None:
        """Summarise as many of the oldest turns as the target asks for; all of them if need be.

        Where no summary is shorter than what it replaces, turns are dropped under high pressure.
        """
        enough = self._oldest(run, share=1 - _EXPECTED_SHARE)
        chosen = enough if self._suffices(run, enough) else self._oldest(run, share=0.0)
        replace_by_summary(run, chosen, self._summaries, "summarized")
        rest = [i for i in self._oldest(run, share=0.0) if run.draft.get(i) is not None]
        if run.excess > 0 and rest:
            replace_by_summary(run, rest, self._summaries, "summarized")
        if run.excess > 0 and run.under_pressure:
            shorten_summaries(run)
        if run.excess > 0 and run.under_pressure:
            drop_turns(run, run.turns, "truncated")
            shorten_summaries(run)
        if run.excess > 0 and run.under_pressure:
            withdraw_summaries(run)
        hold_turn_limit(run)

    def _oldest(self, run: CollectionRun, share: float) -> list[str]:
        """The free messages of the oldest turns whose removal, at this share of gain, meets the need."""
        chosen: list[str] = []
        gained, over = 0.0, run.excess_turns
        for turn in run.turns:
            if share and gained >= run.excess and over <= 0:
                break
            free = run.free_ids(turn.places())
            requests = run.requests_in(free)
            if run.excess <= 0 and not requests:
                continue
            gained += share * sum(run.draft.size(message_id) for message_id in free)
            over -= requests
            chosen.extend(free)
        return chosen

    def _suffices(self, run: CollectionRun, chosen: list[str]) -> bool:
        size = sum(run.draft.size(message_id) for message_id in chosen)
        return size * (1 - _EXPECTED_SHARE) >= run.excess
