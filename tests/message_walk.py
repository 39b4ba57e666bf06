"""Follow one message through the code: which functions of ctxgc its calls pass through, in order."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from ctxgc import GCTriggerReason, Session

LIMIT = 6_000
MOST_READS = 60


Walk = list[tuple[Path, str]]


def follow(call: Callable[[], object]) -> Walk:
    """Return the functions that a call passes through, by file and qualified name, as first called."""
    steps: dict[tuple[str, str], None] = {}

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            steps.setdefault((frame.f_code.co_filename, frame.f_code.co_qualname))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return [(Path(file), name) for file, name in steps]


def walks() -> dict[str, Walk]:
    """Return the walks of the calls that a message meets."""
    log = logging.getLogger("ctxgc")
    before, log.disabled = log.disabled, True  # the window is filled on purpose
    try:
        return _scenes()
    finally:
        log.disabled = before


def _scenes() -> dict[str, Walk]:
    with Session(LIMIT, store="memory:") as session:
        session.append({"role": "user", "content": "Why is the build of src/cart.py red?"})
        call, result = _reading(0)
        session.append(call)
        found = {"append": follow(lambda: session.append(result))}
        session.messages()
        session.append({"role": "user", "content": "And now?"})
        found["messages, nothing due"] = follow(session.messages)
        found["messages, room is made"] = _collecting(session)
        handle = next(hit.handle for hit in session.search("step") if hit.segment.tier == "stashed")
        found["recall"] = follow(lambda: session.recall(handle))
    return found


def _collecting(session: Session) -> Walk:
    """Let an agent read until a collection runs; return the walk of the call that ran it."""
    for number in range(1, MOST_READS):
        for message in _reading(number):
            session.append(message)
        before = len(session.gc_history)
        walk = follow(session.messages)
        made = session.gc_history[before:]
        due = [each for each in made if each.trigger_reason is GCTriggerReason.THRESHOLD]
        if any(each.removal_list for each in due):
            return walk
    raise RuntimeError(f"nothing was collected after {MOST_READS} reads")


def _reading(number: int) -> Iterator[dict[str, Any]]:
    """Yield a call that reads the log of a build, and its result."""
    arguments = f'{{"command": "cat build_{number}.log"}}'
    made = {"name": "bash", "arguments": arguments}
    call = {"id": f"call_{number}", "type": "function", "function": made}
    yield {"role": "assistant", "content": None, "tool_calls": [call]}
    log = "\n".join(f"step {line} of build {number} took {line * 7} ms" for line in range(50))
    yield {"role": "tool", "tool_call_id": f"call_{number}", "content": log}
