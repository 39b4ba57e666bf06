"""What was fetched for the running request stays in the view, whatever tool fetched it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ctxgc import Session

Call = tuple[str, dict[str, Any]]
SERVICES = [f"service-{name}" for name in ("ada", "ben", "cyd", "dov", "eve", "fay", "gus", "hal")]

TOOLS: dict[str, Callable[[str], Call]] = {
    "kubectl": lambda name: ("bash", {"command": f"kubectl get deploy {name} -o yaml"}),
    "cat": lambda name: ("bash", {"command": f"cat deploy/{name}.yaml"}),
    "read_file": lambda name: ("read_file", {"path": f"deploy/{name}.yaml"}),
    "unknown": lambda name: ("dossier", {"subject": name}),
    "mcp": lambda name: ("mcp__cluster__get_settings", {"service": name}),
}


def settings(number: int) -> str:
    """Return a configuration that has values and hardly an identifier of its own."""
    rows = [f"  key{n}: {number * 7 + n}" for n in range(40)]
    return "\n".join(["kind: Settings", "spec:", f"  replicas: {number % 3}", *rows])


def fetched(number: int, name: str, tool: str, *, after: str = "") -> list[dict[str, Any]]:
    """Return the call that fetches the settings of a service, and its result."""
    called, given = TOOLS[tool](name)
    call = {"name": called, "arguments": json.dumps(given)}
    return [
        {
            "role": "assistant",
            "content": after or None,
            "tool_calls": [{"id": f"c{number}", "type": "function", "function": call}],
        },
        {"role": "tool", "tool_call_id": f"c{number}", "content": settings(number)},
    ]


def gather(session: Session, tool: str) -> None:
    """Let an agent fetch all settings, one by one, and work on for twenty more requests."""
    session.append({"role": "user", "content": "Compare the settings of all services."})
    for number, name in enumerate(SERVICES):
        session.messages()
        session.extend(fetched(number, name, tool))
    for number in range(20):
        session.messages()
        call = {"name": "bash", "arguments": json.dumps({"command": f"ls src/part{number}"})}
        calls = [{"id": f"l{number}", "type": "function", "function": call}]
        session.append({"role": "assistant", "content": None, "tool_calls": calls})
        listed = "\n".join(f"src/part{number}/module_{n}.py" for n in range(60))
        session.append({"role": "tool", "tool_call_id": f"l{number}", "content": listed})


@pytest.mark.parametrize("tool", TOOLS)
def test_eight_configurations_are_all_in_the_view_when_they_are_compared(tool: str) -> None:
    with Session(200_000, store="memory:") as session:
        gather(session, tool)
        shown = [m["content"] for m in session.messages() if m["role"] == "tool"]
        assert shown[: len(SERVICES)] == [settings(n) for n in range(len(SERVICES))]


@pytest.mark.parametrize("tool", TOOLS)
def test_their_values_are_in_the_view_long_after_the_user_asked_for_something_else(
    tool: str,
) -> None:
    with Session(200_000, store="memory:") as session:
        gather(session, tool)
        session.append({"role": "assistant", "content": "They differ."})
        session.append({"role": "user", "content": "Thanks. Now list the modules again."})
        gather(session, "unknown")
        shown = [m["content"] for m in session.messages() if m["role"] == "tool"]
        for number in range(len(SERVICES)):
            values = {line for line in settings(number).split("\n") if line[-1].isdigit()}
            assert values <= set(shown[number].split("\n"))


def test_what_the_request_asked_for_stays_when_room_is_made() -> None:
    with Session(8_000, store="memory:") as session:
        asked = "Compare the replicas of all services, and mind what pool_limit they have."
        session.append({"role": "user", "content": asked})
        for number in range(24):
            session.messages()
            session.extend(fetched(number, f"service-{number}", "unknown"))
            session.append({"role": "assistant", "content": f"That was service {number}."})
            session.append({"role": "user", "content": asked})
        shown = json.dumps(session.messages())
        assert session.gc_history
        assert shown.count("replicas: ") >= 20
