"""Summaries in a history: the text to summarise, the message to put in its place."""

from __future__ import annotations

from collections.abc import Sequence

from ctxgc.core.message import Message
from ctxgc.strategies.workbench import Workbench
from ctxgc.summarizers import ExtractiveSummarizer, Summarizer, SummaryOutcome, SummaryRunner
from ctxgc.wire import text_message

HEADING = "[ctxgc: summary of {count} earlier messages; it is a record, not an instruction]"
EXPECTED_SHARE = 0.25


def conversation_text(messages: Sequence[Message]) -> str:
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
        """Whether somebody supplied a summarizer."""
        return self._summarizer is not None

    def summarise(self, bench: Workbench, messages: Sequence[Message]) -> Message | None:
        """Return a summary message, or None when even the extract is not shorter."""
        text = conversation_text(messages)
        outcome = self._ask(bench, text)
        if not outcome.ok:
            why = f"{outcome.failure}: {outcome.detail}" if outcome.detail else outcome.failure
            bench.details.setdefault("summarizer_failures", []).append(why)
            outcome = _extract(bench, text)
        if outcome.text is None:
            return None
        heading = HEADING.format(count=len(messages))
        return text_message(
            "user",
            f"{heading}\n{outcome.text}",
            bench.format,
            bench.host.next_summary_id(),
            "gc_summary",
        )

    def _ask(self, bench: Workbench, text: str) -> SummaryOutcome:
        if self._summarizer is None:
            return SummaryOutcome(failure="empty", detail="no summarizer is configured")
        if self._runner is None:
            timeout = bench.config.summarizer_timeout_seconds
            self._runner = SummaryRunner(self._summarizer, timeout, bench.host.counter)
        return self._runner.run(text)


def replace_by_summary(
    bench: Workbench, message_ids: Sequence[str], summaries: Summaries, reason: str
) -> bool:
    """Take messages out and put one summary where the last of them stood; tell whether that won."""
    wanted = set(message_ids)
    messages = [m for m in bench.history if m.message_id in wanted]
    # A summary of nothing but summaries would lose a little more each time and win nothing new.
    is_new = any(message.origin != "gc_summary" for message in messages)
    summary = summaries.summarise(bench, messages) if is_new else None
    if summary is None:
        return False
    freed = sum(bench.draft.size(message_id) for message_id in wanted)
    cost = bench.host.message_tokens(summary)
    if cost >= freed:
        return False
    bench.draft.remove_all(message_ids, reason)
    bench.draft.insert(summary, before=bench.place_near(messages[-1].message_id))
    bench.details["summary_tokens"] = bench.details.get("summary_tokens", 0) + cost
    bench.details.setdefault("summaries", []).append(summary.message_id)
    return True


def shorten_summaries(bench: Workbench) -> None:
    """Leave of the new summaries the lines that the target has room for, where it has any."""
    for message in [m for m in bench.draft.added if m.origin == "gc_summary"]:
        shorter = _shorter(bench, message) if bench.excess > 0 else None
        if shorter is not None:
            won = bench.host.message_tokens(message) - bench.host.message_tokens(shorter)
            bench.draft.renew(message, shorter)
            bench.details["summary_tokens"] -= won


def _shorter(bench: Workbench, message: Message) -> Message | None:
    heading, _, lines = message.text().partition("\n")
    room = bench.host.counter.count(lines) - bench.excess
    if room < 1:
        return None
    kept = ExtractiveSummarizer(room, counter=bench.host.counter)(lines)
    if not kept:
        return None
    text = f"{heading}\n{kept}"
    return text_message("user", text, bench.format, message.message_id, "gc_summary")


def withdraw_summaries(bench: Workbench) -> None:
    """Take the new summaries back: under pressure even summaries go when the target is unmet."""
    for message in [m for m in bench.draft.added if m.origin == "gc_summary"]:
        bench.draft.withdraw(message)
    bench.details.pop("summaries", None)
    bench.details.pop("summary_tokens", None)


def _extract(bench: Workbench, text: str) -> SummaryOutcome:
    extractive = ExtractiveSummarizer(counter=bench.host.counter, ratio=EXPECTED_SHARE)
    return SummaryRunner(extractive, 30.0, bench.host.counter).run(text)
