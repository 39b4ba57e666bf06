"""Small histories for strategies: turns of known size, a usage, a budget, one way to run a plugin."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ctxgc import Session
from ctxgc.budget import GCPolicy, InstructionBudget, InstructionSource
from ctxgc.collector import GCResult, GCTriggerReason
from ctxgc.config import GCConfig
from ctxgc.core import Message
from ctxgc.session import RECALL_CALL
from ctxgc.strategies import load_gc_plugin
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


def with_results(*outputs: tuple[str, str]) -> list[Message]:
    """Return a history in which each command has an output, and a last request."""
    data: list[dict[str, Any]] = [{"role": "user", "content": "Fix the build."}]
    for number, (command, output) in enumerate(outputs):
        call = {"name": "bash", "arguments": json.dumps({"command": command})}
        data.append(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{number}", "type": "function", "function": call}],
            }
        )
        data.append({"role": "tool", "tool_call_id": f"c{number}", "content": output})
    data += [{"role": "assistant", "content": "Done."}, {"role": "user", "content": "Go on."}]
    return [parse(message, "openai", f"m{n}") for n, message in enumerate(data)]


def output_of(history: list[Message], message_id: str) -> str:
    """Return the text of the first part of a message."""
    return next(m for m in history if m.message_id == message_id).parts[0].text


def rows(about: str, count: int = 60) -> str:
    """Return lines that hold no name of their own."""
    return "\n".join(f"{about} row {n}: nothing to see in this plain line" for n in range(count))


def step(number: int, output: str, *, said: str = "", path: str = "") -> list[Json]:
    """Return one call of an agent with its result."""
    given = {"file_path": path} if path else {"command": f"run {number}"}
    function = {"name": "Read" if path else "bash", "arguments": json.dumps(given)}
    call = {"id": f"c{number}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": said or None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": output},
    ]


def played(limit: int, *steps: list[Json], **keys: Any) -> Session:
    """Return a session that asked for its view after each step."""
    session = Session(
        limit,
        config=GCConfig(auto_recall=False, **keys),
        recall_call=RECALL_CALL,
        store="memory:",
        # Handles differ from session to session, and so do their tokens.
        handle_key=b"the same for all",
    )
    session.append({"role": "user", "content": "Fix the pool."})
    for messages in steps:
        session.extend(messages)
        session.messages()
    return session


def tool_texts(session: Session) -> list[str]:
    """Return what the tool results of the view say."""
    return [str(m["content"]) for m in session.view() if m["role"] == "tool"]
