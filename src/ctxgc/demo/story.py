"""The session of the demo: the work of the scripted agent, as segments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from ctxgc.core.segment import ContextSegment
from ctxgc.testing.agent.render import OpenAIChat
from ctxgc.testing.agent.script import Script
from ctxgc.testing.agent.steps import Call, Step

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
STEP_TIME = timedelta(seconds=20)
INSTRUCTIONS = (
    "You are a careful software engineer. Read before you edit, run the tests after each edit, and keep "
    "the list of open work current."
)

_CODE = re.compile(r"\b[A-Z]{3}-[0-9A-F]{5}\b")
_FILE_TOOLS = {"read_file": "read", "edit_file": "edit"}


def arrivals(count: int, seed: int = 7) -> Iterator[list[ContextSegment]]:
    """Yield some `count` segments in the order and the batches in which a host would add them.

    A batch is a message of the user, one of the agent with its tool calls, or the results of those.
    """
    teller = _Teller()
    yield [teller.instruct()]
    for _, batches in _scenes(teller, count, seed):
        yield from batches


def messages(count: int, seed: int = 7) -> Iterator[dict[str, Any]]:
    """Yield the same session as the messages of a chat, as its agent would have recorded them."""
    teller, chat = _Teller(), OpenAIChat()
    yield {"role": "system", "content": teller.instruct().text}
    for step, _ in _scenes(teller, count, seed):
        yield from chat.messages(step)


def _scenes(
    teller: _Teller, count: int, seed: int
) -> Iterator[tuple[Step, list[list[ContextSegment]]]]:
    """Yield steps with their batches until enough is told and the user would speak again."""
    for step in Script(seed).steps():
        batches = list(teller.tell(step))
        if teller.told > count and step.role == "user":
            return
        yield step, batches


class _Teller:
    """Names the segments of one session and remembers what they refer to."""

    def __init__(self) -> None:
        self.told = 0
        self._steps = 0
        self._task: str | None = None
        self._request: str | None = None
        self._seen: dict[str, str] = {}

    def instruct(self) -> ContextSegment:
        return self._segment(text=INSTRUCTIONS, type="message", role="system", source="system")

    def tell(self, step: Step) -> Iterator[list[ContextSegment]]:
        self._steps += 1
        if step.role == "user":
            yield [self._ask(step.text)]
            return
        spoken = [self._say(step.text)] if step.text else []
        calls = [self._call(number, call) for number, call in enumerate(step.calls)]
        if spoken or calls:
            yield [*spoken, *calls]
        if calls:
            yield [self._result(number, call) for number, call in enumerate(step.calls)]

    def _ask(self, text: str) -> ContextSegment:
        codes = _codes(text)
        self._task = codes[0] if codes else self._task
        asked = self._segment(
            text=text,
            type="decision" if text.startswith("Decision") else "message",
            role="user",
            tags=codes,
        )
        self._request = asked.segment_id
        return asked

    def _say(self, text: str) -> ContextSegment:
        return self._segment(
            text=text, type="message", role="assistant", tags=_codes(text), reply_to=self._request
        )

    def _call(self, number: int, call: Call) -> ContextSegment:
        return self._segment(
            text=json.dumps({"tool": call.name, **call.arguments}),
            type="message",
            role="assistant",
            part="tool_call",
            **self._bond(number),
        )

    def _result(self, number: int, call: Call) -> ContextSegment:
        path: str | None = call.arguments.get("path")
        access = _FILE_TOOLS.get(call.name, "run")
        based_on = self._seen.get(path or "") if access == "edit" else None
        result = self._segment(
            text=call.output,
            type="code" if access == "read" else "log",
            role="tool",
            part="tool_result",
            access=access,
            file_path=path,
            command=None if path else " ".join([call.name, *map(str, call.arguments.values())]),
            failed=call.failed,
            references=(based_on,) if based_on else (),
            **self._bond(number),
        )
        if access == "read" and path is not None:
            self._seen[path] = result.segment_id
        return result

    def _bond(self, number: int) -> dict[str, Any]:
        return {"call_id": f"call-{self._steps}-{number}", "bond_id": f"batch-{self._steps}"}

    def _segment(self, **fields: Any) -> ContextSegment:
        self.told += 1
        return ContextSegment(
            segment_id=f"s{self.told}",
            message_id=f"m{self._steps}-{fields['role']}",
            task_id=self._task,
            created_at=START + self._steps * STEP_TIME,
            **fields,
        )


def _codes(text: str) -> tuple[str, ...]:
    """Return the tickets, decisions and incidents that a text names."""
    return tuple(dict.fromkeys(_CODE.findall(text)))
