"""A session whose stash the commands are tried on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from ctxgc import Session
from ctxgc.stores import Store

KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
STORE = "json:artifacts/context_stash.json"


def turn(number: int) -> list[dict[str, Any]]:
    """Return a call that reads a file, and its result."""
    name = {"name": "read_file", "arguments": f'{{"path": "src/m{number}.py"}}'}
    body = "\n".join(f"def function_{number}_{line}(value): return {line}" for line in range(60))
    return [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": f"c{number}", "type": "function", "function": name}],
        },
        {"role": "tool", "tool_call_id": f"c{number}", "content": body},
    ]


def make_session(store: str | Store = STORE, name: str = "work", days_ago: int = 10) -> Session:
    """Return a session some days old, with one checkpoint.

    Most of its results are stashed under tombstones; a message that its host took back is stashed too,
    and nothing names that.
    """
    then = datetime.now(UTC) - timedelta(days=days_ago)
    session = Session(8_000, store=store, session_id=name, clock=lambda: then)
    session.tools()
    request = {"role": "user", "content": f"Why does it fail?\nThe key is {KEY}."}
    history = [request, *(message for number in range(12) for message in turn(number))]
    session.sync([*history, {"role": "assistant", "content": "A word taken back."}])
    session.sync(history)
    session.messages()
    if not session.checkpoints():
        session.checkpoint("first")
    session.flush()
    return session
