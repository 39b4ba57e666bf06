"""A small agent that keeps its own history, as coding agents do, and sends all of it every time."""

from __future__ import annotations

import json
from typing import Any

import httpx2

SYSTEM = "You are a careful engineer. " * 20
LINES = 120


def output(number: int) -> str:
    """Return what a tool says: long, and different each time."""
    return "\n".join(f"value_{number}_{line} = {line * number + 7}" for line in range(LINES))


class ClaudeAgent:
    """Speaks Anthropic's dialect and moves its cache mark to the newest message, as Claude Code does."""

    def __init__(
        self, url: str, session: str | None = "s-1", model: str = "claude-sonnet-5"
    ) -> None:
        self.url = url
        self.model = model
        self.session = session
        self.history: list[dict[str, Any]] = []
        self.tools = [{"name": "read", "input_schema": {"type": "object"}}]
        self.cache_control = {"type": "ephemeral"}
        self.answers: list[httpx2.Response] = []

    def say(self, text: str) -> httpx2.Response:
        self.history.append({"role": "user", "content": text})
        return self.send()

    def read(self, number: int) -> None:
        """Take in a call of the model and the tool's long answer."""
        call = {
            "type": "tool_use",
            "id": f"t{number}",
            "name": "read",
            "input": {"path": f"f{number}.py"},
        }
        self.history.append({"role": "assistant", "content": [call]})
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": output(number)}
        self.history.append({"role": "user", "content": [result]})

    def body(self) -> bytes:
        *before, last = self.history
        content = last["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        mark = {"cache_control": self.cache_control}
        marked = {**last, "content": [*blocks[:-1], {**blocks[-1], **mark}]}
        asked: dict[str, Any] = {
            "model": self.model,
            "max_tokens": 100,
            "system": [{"type": "text", "text": SYSTEM, **mark}],
            "tools": self.tools,
            "messages": [*before, marked],
        }
        if self.session:
            asked["metadata"] = {"user_id": f"user_x_account__session_{self.session}"}
        return json.dumps(asked, indent=1).encode()

    def send(self) -> httpx2.Response:
        headers = {
            "x-api-key": "k",
            "anthropic-version": "2023-06-01",
            "content-type": "application/json",
        }
        self.answers.append(
            httpx2.post(f"{self.url}/v1/messages", content=self.body(), headers=headers, timeout=60)
        )
        return self.answers[-1]

    def work(self, steps: int, start: int = 0) -> None:
        """Run so many steps of an agent's loop, each with a long tool output."""
        for number in range(start, start + steps):
            self.read(number)
            assert self.send().status_code == 200, self.answers[-1].text


def openai_history(steps: int, form: str) -> list[Any]:
    """Return a history of so many steps in one of OpenAI's formats."""
    found: list[Any] = [{"role": "user", "content": "read all files"}]
    for n in range(steps):
        if form == "openai":
            call = {
                "id": f"c{n}",
                "type": "function",
                "function": {"name": "read", "arguments": "{}"},
            }
            found.append({"role": "assistant", "content": None, "tool_calls": [call]})
            found.append({"role": "tool", "tool_call_id": f"c{n}", "content": output(n)})
        else:
            call = {"type": "function_call", "call_id": f"c{n}", "name": "read", "arguments": "{}"}
            found.append(call)
            found.append({"type": "function_call_output", "call_id": f"c{n}", "output": output(n)})
    return found
