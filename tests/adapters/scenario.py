"""One scripted agent for all frameworks: sixty logs to read in a window that holds a few of them.

The model reads the logs one by one, then searches what left its window for the code in log 3, recalls it and
answers with it. The strict server refuses whatever a provider would refuse.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ctxgc.testing import RecordedRequest, ScriptedModel, StrictServer, ToolCall

CALLS = 60
LIMIT = 6_000
REQUEST = "Read all sixty logs, then tell me the release code of log 3. Constraint: never touch host db-7."
FACT = "release code: QX-4711-omega"
ANSWER = "The release code of log 3 is QX-4711-omega."
MODEL = "gpt-4o"
PINNED = 1
PIN_AT = 4


def log_text(number: int) -> str:
    """Return one log: about 250 tokens, with the fact in log 3."""
    lines = [
        f"log {number} step {n}: unit {n * 37 % 91} took {n * number % 83} ms" for n in range(12)
    ]
    if number == 3:
        lines[5] = f"log 3 {FACT}"
    return "\n".join(lines)


class Logs:
    """The tool: it reads logs and, while the agent runs, pins the first one."""

    def __init__(self, pool: Any = None) -> None:
        self.pool = pool
        self.read: list[int] = []

    def read_log(self, number: int) -> str:
        """Return the log with this number."""
        self.read.append(number)
        if number == PIN_AT and self.pool is not None:
            pin(self.pool)
        return log_text(number)


def pin(pool: Any) -> None:
    """Pin what log 1 said in the conversation that is going on."""
    session = pool.session()
    found = [s for s in session.segments() if s.text == log_text(PINNED)]
    assert len(found) == 1, "the log came in as one segment, word for word"
    session.pin(found[0].segment_id)


@contextmanager
def strict_server(
    *, limit: int = LIMIT, calls: int = CALLS, recall: bool = True
) -> Iterator[StrictServer]:
    """Serve the script on loopback, at a window of `limit` tokens."""
    turns: list[Any] = [ToolCall("read_log", {"number": n}) for n in range(calls)]
    if recall:
        turns += [ToolCall("context_search", {"query": "release code log 3"}), _recall]
    model = ScriptedModel([*turns, _answer if recall else "done"], then="Still here.")
    with StrictServer(model, context_limit=limit, count_output=False) as server:
        try:
            yield server
        finally:
            while _OPEN:
                _OPEN.pop().close()
    assert server.script_errors == []


_OPEN: list[Any] = []


def closed_later(thing: Any) -> Any:
    """Return something that is closed when the server ends."""
    _OPEN.append(thing)
    return thing


def _recall(request: RecordedRequest) -> ToolCall:
    hits = [line for line in newest_text(request).splitlines() if FACT in line]
    assert hits, newest_text(request)
    return ToolCall("context_recall", {"handle": hits[0].split()[0]})


def _answer(request: RecordedRequest) -> str:
    assert FACT in newest_text(request)
    assert "log 3 step 11" in newest_text(request), "the recall shows the whole log"
    return ANSWER


def newest_text(request: RecordedRequest) -> str:
    """Return what the last result of a request says, in any format."""
    newest = request.messages[-1]
    content = newest.get("output", newest.get("content"))
    while isinstance(content, list):
        content = content[-1].get("content", content[-1].get("text"))
    return unwrapped(str(content))


def unwrapped(text: str) -> str:
    """Return the text of a result that a framework sent as an object: `{"result": text}`."""
    if not text.startswith('{"result":'):
        return text
    return str(json.loads(text)["result"])


def check_run(server: StrictServer, *, requests: int = CALLS + 3) -> None:
    """Check all that the strict server saw of a run that went well."""
    assert [(r.breaches[0].message) for r in server.refusals] == []
    assert len(server.requests) == requests
    assert max(request.tokens for request in server.requests) <= LIMIT
    check_kept(server)


def check_kept(server: StrictServer) -> None:
    """Check that each request had the user's words, and each after the pin the pinned log."""
    for request in server.requests:
        assert REQUEST in sent(request)
    for request in server.requests[PIN_AT + 1 : CALLS]:
        assert log_text(PINNED) in sent(request)
    last = sent(server.requests[CALLS - 1])
    assert "log 9 step 3" not in last, "something left the window"


def sent(request: RecordedRequest) -> str:
    """Return all texts of a request."""
    return "\n".join(_strings(list(request.messages)))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield unwrapped(value)
    elif isinstance(value, dict):
        for each in value.values():
            yield from _strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)


SCHEMA = {
    "type": "object",
    "properties": {"number": {"type": "integer"}},
    "required": ["number"],
}


FUNCTION = {"name": "read_log", "description": "Read a log.", "parameters": SCHEMA}
CHAT_TOOL = {"type": "function", "function": FUNCTION}


def number_of(arguments: Any) -> int:
    """Return the log that a call names; the arguments are JSON text or an object."""
    given = json.loads(arguments) if isinstance(arguments, str) else arguments
    return int(given["number"])


def fails_with(error: type[BaseException], run: Callable[[], object]) -> str:
    """Return what the error says that a loop ends with; it must say that the context is too long."""
    try:
        run()
    except error as raised:
        said = _chain(raised)
        assert re.search(r"maximum context length|too long|context window|context_length", said), (
            said
        )
        return said
    raise AssertionError("the loop did not fail without the adapter")


def _chain(error: BaseException | None) -> str:
    said = []
    while error is not None:
        said.append(f"{type(error).__name__}: {error}")
        error = error.__cause__ or error.__context__
    return "\n".join(said)
