"""Long histories that are full of everything that a request may hold."""

from __future__ import annotations

from typing import Any

from ctxgc.core import Format
from tests.sdk.placement import Json, kind_of, place
from tests.sdk.unions import objects, request_types

_IDS = (
    "id", "call_id", "tool_use_id", "tool_call_id", "approval_request_id", "caller_id", "tool_id",
)  # fmt: skip
_LINES = "\n".join(f"src/module_{n}.py:{n}: value_{n} = compute({n})" for n in range(60))


def long_history(form: Format) -> list[Json]:
    """Return a valid history with the least and the fullest of each type, and results to collect."""
    history: list[Json] = []
    for number, instance in enumerate(_chosen(form)):
        history += [_renamed(message, number) for message in place(instance, form)]
        history += work(form, number)
    return [*history, {"role": "user", "content": "what next?"}]


def _chosen(form: Format) -> list[Json]:
    found = [each for own, member in request_types() if own == form for each in objects(member)[:2]]
    # These end a history: what would follow them is not sent, or not seen.
    return [each for each in found if form == "openai" or kind_of(each) != "compaction_trigger"]


def work(form: Format, number: int) -> list[Json]:
    """Return a call of the client's with a large result."""
    name, text = f"work_{number}", f"run {number}\n{_LINES}"
    if form == "openai":
        call = {"id": name, "type": "function", "function": {"name": "Bash", "arguments": "{}"}}
        return [
            {"role": "user", "content": f"step {number}"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": name, "content": text},
        ]
    if form == "responses":
        return [
            {"role": "user", "content": f"step {number}"},
            {"type": "function_call", "call_id": name, "name": "Bash", "arguments": "{}"},
            {"type": "function_call_output", "call_id": name, "output": text},
        ]
    use = {"type": "tool_use", "id": name, "name": "Bash", "input": {}}
    return [
        {"role": "user", "content": f"step {number}"},
        {"role": "assistant", "content": [use]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": name, "content": text}],
        },
        {"role": "assistant", "content": "done"},
    ]


def _renamed(value: Any, number: int) -> Any:
    """Return the value with ids of its own, so that nothing in a long history shares one."""
    if isinstance(value, list):
        return [_renamed(each, number) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: f"{each}_{number}" if key in _IDS and isinstance(each, str) else _renamed(each, number)
        for key, each in value.items()
    }
