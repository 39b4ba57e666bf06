"""What was fetched for the running request stays in the view, whatever tool fetched it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ctxgc import GCConfig, Session
from ctxgc.core import is_tombstone
from ctxgc.session import RECALL_CALL

Call = tuple[str, dict[str, Any]]
SERVICES = [f"service-{name}" for name in ("ada", "ben", "cyd", "dov", "eve", "fay", "gus", "hal")]

TOOLS: dict[str, Callable[[str], Call]] = {
    "kubectl": lambda name: ("bash", {"command": f"kubectl get deploy {name} -o yaml"}),
    "cat": lambda name: ("bash", {"command": f"cat deploy/{name}.yaml"}),
    "cfg": lambda name: ("bash", {"command": f"cat deploy/{name}.cfg"}),
    "script": lambda name: ("bash", {"command": f"python tools/show.py {name}"}),
    "read_file": lambda name: ("read_file", {"path": f"deploy/{name}.yaml"}),
    "unknown": lambda name: ("dossier", {"subject": name}),
    "mcp": lambda name: ("mcp__cluster__get_settings", {"service": name}),
}


def recalling(limit: int, config: GCConfig | None = None) -> Session:
    """Return a session whose model can recall, so that it collects for the price."""
    return Session(limit, config=config, store="memory:", recall_call=RECALL_CALL)


def settings(number: int) -> str:
    """Return a configuration that has values and hardly an identifier of its own."""
    rows = [f"  key{n}: {number * 7 + n}" for n in range(40)]
    return "\n".join(["kind: Settings", "spec:", f"  replicas: {number % 3}", *rows])


def notes(number: int) -> str:
    """Return prose without a value."""
    return "\n".join(
        f"The team of plan {'abcdefgh'[number]} met and talked at length." for _ in range(120)
    )


def fetched(
    number: int, name: str, tool: str, *, says: Callable[[int], str] = settings
) -> list[dict[str, Any]]:
    """Return the call that fetches the settings of a service, and its result."""
    called, given = TOOLS[tool](name)
    call = {"name": called, "arguments": json.dumps(given)}
    return [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": f"c{number}", "type": "function", "function": call}],
        },
        {"role": "tool", "tool_call_id": f"c{number}", "content": says(number)},
    ]


def gather(session: Session, tool: str, *, says: Callable[[int], str] = settings) -> None:
    """Let an agent fetch all settings, one by one, and work on for twenty more requests."""
    session.append({"role": "user", "content": "Compare the settings of all services."})
    for number, name in enumerate(SERVICES):
        session.messages()
        session.extend(fetched(number, name, tool, says=says))
    work_on(session, "l")


def work_on(session: Session, ids: str, requests: int = 20) -> None:
    """Let an agent list files."""
    for number in range(requests):
        session.messages()
        call = {"name": "bash", "arguments": json.dumps({"command": f"ls src/part{number}"})}
        calls = [{"id": f"{ids}{number}", "type": "function", "function": call}]
        session.append({"role": "assistant", "content": None, "tool_calls": calls})
        listed = "\n".join(f"src/part{number}/module_{n}.py" for n in range(60))
        session.append({"role": "tool", "tool_call_id": f"{ids}{number}", "content": listed})


@pytest.mark.parametrize("tool", TOOLS)
def test_eight_configurations_are_all_in_the_view_when_they_are_compared(tool: str) -> None:
    with recalling(200_000) as session:
        gather(session, tool)
        shown = [m["content"] for m in session.messages() if m["role"] == "tool"]
        assert shown[: len(SERVICES)] == [settings(n) for n in range(len(SERVICES))]


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("says", [settings, notes])
def test_they_are_in_the_view_long_after_the_user_asked_for_something_else(
    tool: str, says: Callable[[int], str]
) -> None:
    with recalling(200_000) as session:
        gather(session, tool, says=says)
        ask_for_more(session)
        shown = [m["content"] for m in session.messages() if m["role"] == "tool"]
        assert shown[: len(SERVICES)] == [says(n) for n in range(len(SERVICES))]


def test_small_steps_take_their_idle_prose_once_the_window_is_fuller_than_the_soft_limit() -> None:
    config = GCConfig(soft_limit_percent=20, auto_recall=False)
    with recalling(20_000, config) as session:
        gather(session, "unknown", says=notes)
        ask_for_more(session)
        shown = [m["content"] for m in session.messages() if m["role"] == "tool"]
        assert any(is_tombstone(said) for said in shown[: len(SERVICES)])


def ask_for_more(session: Session) -> None:
    """Let the user ask for something else, and the agent work on that for long."""
    session.append({"role": "assistant", "content": "They differ."})
    session.append({"role": "user", "content": "Thanks. Now look around in the modules."})
    work_on(session, "m", 60)


def test_equal_lines_of_two_records_are_shown_in_both() -> None:
    def record(number: int) -> str:
        head = [f"kind: Settings of service {number}", "spec:"]
        return "\n".join([*head, *(f"  setting_of_number_{n}: {n}" for n in range(12))])

    with recalling(200_000) as session:
        session.append({"role": "user", "content": "Compare the settings of all services."})
        for number, name in enumerate(SERVICES):
            session.extend(fetched(number, name, "unknown", says=record))
            session.messages()
        shown = [m["content"] for m in session.messages() if m["role"] == "tool"]
        assert shown == [record(number) for number in range(len(SERVICES))]


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
