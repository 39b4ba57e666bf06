"""A dashboard over a home with recorded sessions and a store with one session, and a client that calls it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2

from ctxgc import Session
from ctxgc.dashboard import DashboardApp, DashboardSessions
from ctxgc.session import Store, open_store
from tests.wire.transcripts import made

TOKEN = "a token of the owner"
PORT = 8788
HOST = f"127.0.0.1:{PORT}"
START = datetime(2026, 1, 1, 12, tzinfo=UTC)
RECORDED = "5f8cbb78-38d3-47e9-9504-baa93bb166c9"
SYSTEM = "You are a careful engineer. " * 20
TOOLS: list[dict[str, Any]] = [
    {"name": "read", "description": "Reads a file. " * 20, "input_schema": {"type": "object"}},
    {"name": "never", "description": "Is never called. " * 20, "input_schema": {"type": "object"}},
]


def ticking(seconds: int = 7) -> Iterator[datetime]:
    """Yield times that go on."""
    now = START
    while True:
        now += timedelta(seconds=seconds)
        yield now


def file_text(number: int, lines: int = 120) -> str:
    """Return the content of a file, another one at each reading."""
    return "\n".join(
        f"line {n} of {number}: value_{number}_{n} = {n * number}" for n in range(lines)
    )


def worked(store: Store, session_id: str = "s", steps: int = 14, **options: Any) -> Session:
    """Return a session that read nine files in turn, with a request before each step."""
    times = ticking()
    options = {"context_limit": 20_000, "model": "claude-sonnet-4-5", **options}
    session = Session(store=store, session_id=session_id, clock=lambda: next(times), **options)
    session.set_system(SYSTEM)
    session.set_tools(TOOLS)
    session.append({"role": "user", "content": "fix the bug"}, format="anthropic")
    for number in range(steps):
        session.messages()
        call = {"type": "tool_use", "id": f"t{number}", "name": "read",
                "input": {"file_path": f"/repo/f{number % 9}.py"}}  # fmt: skip
        session.append({"role": "assistant", "content": [call]})
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": file_text(number)}
        session.append({"role": "user", "content": [result]})
    session.messages()
    session.flush()
    return session


def recorded(folder: Path, *, compact_after: int | None = None) -> Path:
    """Write a recorded session where Claude Code keeps them."""
    place = folder / "claude" / "projects" / "-repo"
    place.mkdir(parents=True)
    steps = made.conversation(turns=8, lines=40)
    lines = made.claude_code(steps, compact_after=compact_after)
    return made.write_lines(place / f"{RECORDED}.jsonl", lines)


class Page:
    """Calls a dashboard as its page does."""

    def __init__(self, app: DashboardApp, token: str | None = TOKEN) -> None:
        self._app = app
        self.headers = {"host": HOST}
        if token is not None:
            self.headers["cookie"] = f"ctxgc_dashboard_{PORT}={token}"
        self.csrf = ""

    def call(self, method: str, path: str, **more: Any) -> httpx2.Response:
        """Return the answer to a request as it is."""

        async def work() -> httpx2.Response:
            transport = httpx2.ASGITransport(app=self._app)
            async with httpx2.AsyncClient(transport=transport, base_url=f"http://{HOST}") as client:
                headers = {**self.headers, **more.pop("headers", {})}
                return await client.request(method, f"/dashboard/{path}", headers=headers, **more)

        return asyncio.run(work())

    def get(self, path: str) -> Any:
        """Return the JSON of an answer that is fine."""
        answer = self.call("GET", path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def act(self, row_id: str, action: str, body: dict[str, Any] | None = None) -> Any:
        """Do something and return the answer, whatever it is."""
        self.csrf = self.csrf or self.get("api/sessions")["csrf"]
        path = f"api/sessions/{row_id}/actions/{action}"
        headers = {"x-ctxgc-csrf": self.csrf}
        return self.call("POST", path, json=body or {}, headers=headers).json()


def dashboard(store: Store | None = None, **options: Any) -> DashboardApp:
    """Return a dashboard of a store."""
    sessions = DashboardSessions(store, **options)
    return DashboardApp(sessions, tokens={"me": TOKEN}, port=PORT, hosts=("127.0.0.1",))


def memory() -> Store:
    """Return a store in memory."""
    return open_store("memory:")
