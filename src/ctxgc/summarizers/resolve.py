"""Summarizers by name, as configuration files write them, and a safe way to run any summarizer."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Coroutine
from typing import Any, Literal, cast

import msgspec

from ctxgc.config import mask_text, unknown_key
from ctxgc.errors import ConfigError
from ctxgc.summarizers.base import Summarizer, TextCounter
from ctxgc.summarizers.extractive import ExtractiveSummarizer
from ctxgc.summarizers.models import AnthropicSummarizer, OpenAISummarizer

_MODELS: dict[str, type[OpenAISummarizer | AnthropicSummarizer]] = {
    "openai": OpenAISummarizer,
    "anthropic": AnthropicSummarizer,
}


def resolve_summarizer(spec: Summarizer | str | None) -> Summarizer | None:
    """Return a callable as it is, a named summarizer, or None for None.

    Names are `extractive`, `openai:MODEL` and `anthropic:MODEL`.

    Raises:
        ConfigError: the name is unknown, lacks its model, or is not a name.
        SummarizerError: the package that it needs is not installed.
    """
    if spec is None or callable(spec):
        return spec
    if not isinstance(spec, str):
        raise ConfigError(
            f"summarizer must be a callable or a name, got {type(spec).__name__}",
            hint="pass a callable, or a name such as extractive or openai:MODEL",
            key="summarizer",
        )
    kind, _, model = spec.partition(":")
    if kind == "extractive" and not model:
        return ExtractiveSummarizer()
    if kind not in _MODELS:
        raise unknown_key(spec, ["extractive", "openai:MODEL", "anthropic:MODEL"], "summarizer")
    if not model:
        raise ConfigError(f'summarizer "{spec}" lacks a model', hint=f"write {kind}:MODEL")
    return _MODELS[kind](model)


# -- Running: whatever a summarizer does, no history is lost and no collection stops


Failure = Literal["raised", "timeout", "still_hanging", "not_text", "empty", "not_shorter"]


class SummaryOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """A summary with its tokens, or why there is none."""

    text: str | None = None
    tokens: int = 0
    failure: Failure | None = None
    detail: str = ""

    @property
    def ok(self) -> bool:
        """Whether there is a summary."""
        return self.text is not None


class SummaryRunner:
    """Runs one summarizer, with a timeout in seconds per call.

    While a call that timed out is still running, further calls fail at once, so that a dead service costs
    one wait and one thread, not one per collection.
    """

    def __init__(self, summarizer: Summarizer, timeout: float, counter: TextCounter) -> None:
        self._summarizer = summarizer
        self._timeout = timeout
        self._counter = counter
        self._hanging: threading.Thread | None = None

    def run(self, conversation: str) -> SummaryOutcome:
        """Return the summary, or why there is none; never raises."""
        if self._hanging is not None and self._hanging.is_alive():
            return SummaryOutcome(
                failure="still_hanging", detail="an earlier call has not returned"
            )
        call = _Call(self._summarizer, conversation)
        thread = threading.Thread(target=call.run, name="ctxgc-summarizer", daemon=True)
        thread.start()
        thread.join(self._timeout)
        if thread.is_alive():
            self._hanging = thread
            return SummaryOutcome(failure="timeout", detail=f"no answer in {self._timeout:g} s")
        return self._judge(call, conversation)

    def _judge(self, call: _Call, conversation: str) -> SummaryOutcome:
        if call.error is not None:
            said = f"{type(call.error).__name__}: {call.error}"
            return SummaryOutcome(failure="raised", detail=mask_text(said))
        if not isinstance(call.answer, str):
            return SummaryOutcome(failure="not_text", detail=f"got {type(call.answer).__name__}")
        text = call.answer.strip()
        if not text:
            return SummaryOutcome(failure="empty", detail="the summary is blank")
        tokens, before = self._counter.count(text), self._counter.count(conversation)
        if tokens >= before:
            return SummaryOutcome(failure="not_shorter", detail=f"{tokens} tokens for {before}")
        return SummaryOutcome(text=text, tokens=tokens)


def run_summarizer(
    summarizer: Summarizer, conversation: str, *, timeout: float, counter: TextCounter
) -> SummaryOutcome:
    """Run a summarizer once; see `SummaryRunner`, which remembers calls that hang."""
    return SummaryRunner(summarizer, timeout, counter).run(conversation)


class _Call:
    """One call in its own thread: an answer or an error, once the thread has ended."""

    def __init__(self, summarizer: Summarizer, conversation: str) -> None:
        self.answer: object = None
        self.error: BaseException | None = None
        self._summarizer = summarizer
        self._conversation = conversation
        self._context = contextvars.copy_context()

    def run(self) -> None:
        try:
            self.answer = self._context.run(self._ask)
        except BaseException as error:  # noqa: BLE001 (even sys.exit() must not lose the answer's absence)
            self.error = error

    def _ask(self) -> object:
        answer = self._summarizer(self._conversation)
        if inspect.iscoroutine(answer):
            return asyncio.run(cast("Coroutine[Any, Any, str]", answer))
        return answer
