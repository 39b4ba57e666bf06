"""A conversation: one model, one session, one set of tools. Ask, run the calls, ask again."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from typing import Any, TypeVar

from ctxgc.client.answer import Answer, Call, Reply
from ctxgc.client.provider import OnText, Provider
from ctxgc.client.tools import Tool, Toolbox, ToolOutcome, interrupted, recall_tools
from ctxgc.errors import ClientError, ContextOverflowError, InputError
from ctxgc.session import Session
from ctxgc.wire import Overflow, parse_overflow

OnThreshold = Callable[[float, float], object]
T = TypeVar("T")


class Cancellation:
    """Tells a conversation in another thread that nobody waits for its reply any more."""

    def __init__(self) -> None:
        self._told: Future[None] = Future()

    def tell(self) -> None:
        """End the conversation: an answer that is on its way is dropped, and no tool is called any more."""
        self._told.set_result(None)

    def check(self) -> None:
        """Raise CancelledError if it was told."""
        if self._told.done():
            raise CancelledError

    def wait_for(self, result: Future[T]) -> T:
        """Return a result, or raise CancelledError as soon as it is told."""
        both: list[Future[Any]] = [result, self._told]
        wait(both, return_when=FIRST_COMPLETED)
        if self._told.done():
            result.cancel()
        self.check()
        return result.result()

    def run(self, work: Callable[[], T]) -> T:
        """Do something that may take long and cannot be interrupted; if it is told, the result is dropped."""
        self.check()
        done: Future[T] = Future()
        threading.Thread(target=_do, args=(work, done), daemon=True).start()
        return self.wait_for(done)


def _do(work: Callable[[], T], done: Future[T]) -> None:
    done.set_running_or_notify_cancel()
    try:
        done.set_result(work())
    except BaseException as error:  # noqa: BLE001 - it is raised where the result is waited for
        done.set_exception(error)


class Conversation:
    """Keeps a session and a model in step. Nothing said is lost when a request fails."""

    def __init__(
        self,
        session: Session,
        provider: Provider,
        toolbox: Toolbox,
        *,
        system: str | None = None,
        max_rounds: int,
        recall: bool,
    ) -> None:
        self.session = session
        self.provider = provider
        self.toolbox = toolbox
        self.system = system
        self.max_rounds = max_rounds
        if system:
            session.set_system(system)
        for tool in recall_tools(session) if recall else ():
            toolbox.add(tool)
        self._describe_tools()

    def add_tool(self, tool: Tool) -> None:
        """Offer one more tool from the next request on."""
        self.toolbox.add(tool)
        self._describe_tools()

    def say(self, text: str) -> None:
        """Add what the user says; the same text sent again after a failed request counts once."""
        if not text.strip():
            raise InputError("the message is blank", hint="pass some text", field="text")
        self._close_open_calls()
        history = self.session.history
        last = history[-1] if history else None
        if last is None or last.role != "user" or last.results() or last.text() != text:
            self.session.append(self.provider.user(text), self.provider.format)

    def run(
        self,
        on_text: OnText | None = None,
        on_gc_threshold: OnThreshold | None = None,
        cancellation: Cancellation | None = None,
    ) -> Reply:
        """Ask the model and run its calls until it calls no more.

        Raises:
            CancelledError: it was told to end; the history is valid, and another `run` continues from there.
            ClientError: it still calls after `max_rounds`; another `run` continues from there.
            ContextOverflowError: what must stay does not fit the window.
        """
        self._close_open_calls()
        watch = _ThresholdWatch(self.session, on_gc_threshold)
        collected = len(self.session.gc_history)
        answers: list[Answer] = []
        while len(answers) < self.max_rounds:
            watch.check()
            answers.append(self._ask(on_text, cancellation))
            if not answers[-1].calls:
                watch.check()
                return Reply.of(answers, self.session.gc_history[collected:])
            self._answer_calls(answers[-1].calls)
            if cancellation is not None:
                cancellation.check()
        raise ClientError(
            f"the model still calls tools after {self.max_rounds} rounds",
            hint="continue with resume(), or connect with a larger max_rounds",
            rounds=self.max_rounds,
        )

    def _ask(self, on_text: OnText | None, cancellation: Cancellation | None) -> Answer:
        while True:
            view = [*self.session.messages(self.provider.format), *self._enrichment()]
            send = functools.partial(
                self.provider.send,
                view,
                system=self.system,
                tools=self.session.live_tools(),
                on_text=on_text,
            )
            try:
                answer = send() if cancellation is None else cancellation.run(send)
                break
            except Exception as error:
                overflow = overflow_of(error)
                if overflow is None:
                    raise
                try:
                    self.session.recover(overflow)
                except ContextOverflowError as fatal:
                    raise fatal from error
        if answer.input_tokens:
            self.session.report_usage(answer.input_tokens)
        self._take(answer.messages)
        return answer

    def _answer_calls(self, calls: list[Call]) -> None:
        outcomes: list[ToolOutcome] = []
        try:
            self.toolbox.run_all(calls, outcomes)
        finally:
            # Even if the program is interrupted, the history stays valid for every provider.
            outcomes += [interrupted(call.call_id) for call in calls[len(outcomes) :]]
            self._take(self.provider.results(outcomes))

    def _close_open_calls(self) -> None:
        """Answer the calls that an earlier process left open."""
        waiting: dict[str, None] = {}
        for message in self.session.history:
            waiting.update(dict.fromkeys(message.calls()))
            for call_id in message.results():
                waiting.pop(call_id, None)
        if waiting:
            self._take(self.provider.results([interrupted(call_id) for call_id in waiting]))

    def _take(self, messages: list[dict[str, Any]]) -> None:
        for message in messages:
            self.session.append(message, self.provider.format)

    def _enrichment(self) -> list[dict[str, Any]]:
        """What the host adds to each request, after all else so that the cached prefix stays."""
        text = "\n\n".join(self.session.enrichment().values())
        return [self.provider.user(text)] if text else []

    def _describe_tools(self) -> None:
        policies = {tool.name: tool.policy for tool in self.toolbox}
        self.session.set_tools([self.provider.schema(tool) for tool in self.toolbox], policies)


class _ThresholdWatch:
    """Calls back once when the threshold is reached."""

    def __init__(self, session: Session, callback: OnThreshold | None) -> None:
        self._session = session
        self._callback = callback

    def check(self) -> None:
        """Call back if the context has reached the threshold."""
        threshold = self._session.config.threshold_percent
        percent = self._session.usage().percent_used
        if self._callback is not None and percent >= threshold:
            callback, self._callback = self._callback, None
            callback(percent, threshold)


def overflow_of(error: Exception) -> Overflow | None:
    """Return what an SDK's error says about an overflow, or None if it is about something else."""
    details = getattr(error, "details", None)
    body = getattr(error, "body", None) or (details or {}).get("error") or str(error)
    if not isinstance(body, dict | str | bytes):
        body = str(body)
    return parse_overflow(getattr(error, "status_code", None), body)
