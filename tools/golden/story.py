"""The story that stored sessions have lived through, and how it goes on after they are opened."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from ctxgc import CtxgcError, GCConfig, GCPolicy, Session
from ctxgc.session import RECALL_CALL
from tools.golden.places import input_bytes

Json = dict[str, Any]
Format = Literal["openai", "anthropic", "responses"]
START = datetime(2026, 3, 2, 9, tzinfo=UTC)
LIMIT = 100_000  # from here on a window is roomy enough for collections by price
SESSION = "golden"


class LetterCounter:
    """One token for each character: what a random handle costs is then the same each time."""

    name = "letters"
    exact = True

    def count(self, text: str) -> int:
        """Return the number of tokens."""
        return len(text)


class Clock:
    """Goes on only when it is told to."""

    def __init__(self, now: datetime = START) -> None:
        self.now = now

    def __call__(self) -> datetime:
        """Return the present time."""
        return self.now

    def wait(self, seconds: float) -> None:
        """Let time go by."""
        self.now += timedelta(seconds=seconds)


class Script:
    """An invented conversation in one format, and the system prompt and tools beside it."""

    def __init__(self, format_: Format) -> None:
        data: Json = json.loads(input_bytes(f"conversation-{format_}.json"))
        self.format = format_
        self.system: str = data["system"]
        self.tools: list[Json] = data["tools"]
        self.messages: list[Json] = data["messages"]
        self.constants: Json = data["constants"]


def opened(store: Any, script: Script, clock: Clock, **options: Any) -> Session:
    """Open the session of the story in a store."""
    # Only a model whose thinking is bound shows what a session does to keep it valid.
    model = "claude-opus-5-5" if script.format == "anthropic" else None
    return Session(
        LIMIT, store=store, session_id=SESSION, counter=LetterCounter(), clock=clock, model=model,
        **{"config": config_of(script), "recall_call": RECALL_CALL, **options},
    )  # fmt: skip


def config_of(script: Script) -> GCConfig:
    """Return a configuration by which a short story has collections for the price and for room."""
    return GCConfig(
        recent_messages=4, recent_files=2, threshold_percent=28, target_percent=20,
        plugin_config={"constants": script.constants},
    )  # fmt: skip


def asks(message: Json) -> bool:
    """Tell whether the model is asked after a message."""
    if message.get("role") in ("user", "tool"):
        return True
    return message.get("type") == "function_call_output"


def play(session: Session, script: Script, clock: Clock, first: int, last: int) -> Iterator[int]:
    """Append messages one by one and send each request; yield the places after which one was sent."""
    for place in range(first, min(last, len(script.messages))):
        session.append(script.messages[place], format=script.format)
        clock.wait(7)
        coming = script.messages[place + 1] if place + 1 < len(script.messages) else {}
        # Results of calls made side by side come in together, before the next request.
        if asks(script.messages[place]) and not asks(coming):
            session.messages()
            yield place


def live(session: Session, script: Script, clock: Clock) -> None:
    """Live through the first part: everything that a session can remember happens once."""
    if script.format != "openai":
        session.set_system(script.system)
    session.set_tools(script.tools)
    session.enrich("docs", "Prices are in cents. " * 10)
    until(session, script, clock, 0, 30)
    session.set_policy(session.history[4].message_id, GCPolicy.PRESERVABLE)
    session.pin(session.segments()[5].segment_id)
    session.pin(session.history[2].message_id)
    session.set_task("first", depends_on=("before",))
    until(session, script, clock, 30, 60)
    session.report_usage(int(session.usage().total_tokens * 1.1))
    session.checkpoint("half way", task_queue=["a", "b"], system_state={"phase": 1}, files=[])
    session.set_task("second", depends_on=("first",))
    session.set_active_file("src/notify/route.py", (1, 40))
    until(session, script, clock, 60, 90)
    session.collect(int(session.usage().total_tokens * 0.7))
    session.undo()
    session.collect(int(session.usage().total_tokens * 0.6))
    recall_first(session)
    until(session, script, clock, 90, 120)
    session.progress(phase="testing", tasks_completed=5)
    session.collect(int(session.usage().total_tokens * 0.8))
    session.undo()
    recall_first(session)
    session.report_usage(int(session.usage().total_tokens * 1.2))
    session.flush()


def until(session: Session, script: Script, clock: Clock, first: int, last: int) -> None:
    """Play messages to their end."""
    for _ in play(session, script, clock, first, last):
        pass


def recall_first(session: Session) -> str:
    """Bring the first stashed segment back that can come back, and return its id."""
    for segment in session.segments():
        if segment.tier == "stashed":
            with suppress(CtxgcError):
                return session.recall(segment.segment_id).segment_id
    return ""
