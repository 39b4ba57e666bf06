"""Small histories for strategies: turns of known size, a usage, a budget, one way to run a plugin."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ctxgc.budget import GCPolicy, InstructionBudget, InstructionSource
from ctxgc.config import GCConfig
from ctxgc.core import Message
from ctxgc.strategies import GCResult, GCTriggerReason, load_gc_plugin
from ctxgc.tokens import counter_for, message_tokens
from ctxgc.wire import parse

Json = dict[str, Any]
COUNTER = counter_for(None)


def words(count: int, about: str = "thing") -> str:
    """Return a text of about so many tokens."""
    return " ".join(f"{about}" for _ in range(count))


def turn(number: int, size: int = 50, *, tools: int = 0) -> list[Json]:
    """Return one turn: a request, `tools` calls with results of `size` words, an answer."""
    messages: list[Json] = [{"role": "user", "content": f"request {number} " + words(size)}]
    for call in range(tools):
        name = f"call_{number}_{call}"
        function = {
            "name": "run",
            "arguments": json.dumps({"command": f"make part{number}-{call}"}),
        }
        messages += [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": name, "type": "function", "function": function}],
            },
            {
                "role": "tool",
                "tool_call_id": name,
                "content": f"out {number} " + words(size, "row"),
            },
        ]
    return [*messages, {"role": "assistant", "content": f"answer {number} " + words(size)}]


def talk(turns: int, size: int = 50, *, tools: int = 0, system: bool = False) -> list[Message]:
    """Return a conversation; the messages are named `m0`, `m1`, and so on."""
    data = [{"role": "system", "content": "Be careful."}] if system else []
    for number in range(turns):
        data += turn(number, size, tools=tools)
    return [parse(message, "openai", f"m{place}") for place, message in enumerate(data)]


def size_of(messages: Sequence[Message]) -> int:
    """Return the tokens of messages."""
    return sum(message_tokens(message, COUNTER) for message in messages)


def ids(messages: Sequence[Message]) -> list[str]:
    """Return the ids of messages."""
    return [message.message_id for message in messages]


def requests(messages: Sequence[Message]) -> list[int]:
    """Return the numbers of the requests that are left."""
    texts = [m.text() for m in messages if m.role == "user" and m.text().startswith("request ")]
    return [int(text.split()[1]) for text in texts]


def usage_of(history: Sequence[Message], limit: int, **more: Any) -> Json:
    """Return the usage that a session would hand over."""
    total = size_of(history)
    turns = sum(message.role == "user" for message in history)
    return {
        "total_tokens": total,
        "context_limit": limit,
        "percent_used": 100 * total / limit,
        "turns": turns,
        **more,
    }


def budget_of(
    history: Sequence[Message], limit: int, policies: dict[str, GCPolicy] | None = None
) -> InstructionBudget:
    """Return a budget with one child for each message, older ones first; PARTIAL unless named."""
    budget = InstructionBudget(limit)
    for place, message in enumerate(history):
        budget.add_child(
            InstructionSource.SYSTEM
            if message.role == "system"
            else InstructionSource.CONVERSATION,
            message.message_id,
            message_tokens(message, COUNTER),
            (policies or {}).get(
                message.message_id,
                GCPolicy.LOCKED if message.role == "system" else GCPolicy.PARTIAL,
            ),
            created_at=float(place),
            message_ids=(message.message_id,),
        )
    return budget


def collect(
    name: str,
    history: list[Message],
    *,
    target: int,
    limit: int | None = None,
    options: Json | None = None,
    config: GCConfig | None = None,
    reason: GCTriggerReason = GCTriggerReason.THRESHOLD,
    budget: InstructionBudget | None = None,
    **usage: Any,
) -> tuple[list[Message], GCResult]:
    """Run a strategy by itself, down to `target` tokens."""
    plugin = load_gc_plugin(name, {"notify_on_gc": False, **(options or {})})
    window = limit or 2 * size_of(history)
    given = usage_of(history, window, target_tokens=target, **usage)
    return plugin.collect(history, given, config or GCConfig(), reason, budget=budget)
