"""`python -P -m ctxgc.agents.hook EVENT`: what a coding agent calls, with JSON on standard input.

It never breaks the agent: whatever goes wrong, the exit code is 0, nothing is printed, so nothing
changes, and a line in the log says why. It loads only what the event needs, because it runs after
every tool call.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # the constant of typing, which takes as long to load as the interpreter
if TYPE_CHECKING:
    from collections.abc import Sequence

SMALL = 16_000
"""Fewer bytes than any output that is stashed."""


def run_hook(words: Sequence[str] | None = None) -> int:
    """Answer one event; the exit code is always 0."""
    given = list(sys.argv[1:] if words is None else words)
    try:
        _write(1, respond(given, _read(0)))
    except Exception:  # noqa: BLE001 (the pipe is closed, or ctxgc cannot be loaded)
        return 0
    return 0


def respond(words: Sequence[str], raw: bytes) -> bytes:
    """Return what is printed for an event; nothing if there is no answer, or on any failure."""
    event = words[0] if words else ""
    if event == "post-tool-use" and len(raw) < SMALL:
        return b""
    from ctxgc.agents.events import read_settings  # noqa: PLC0415

    settings = read_settings(words[1:])
    try:
        from ctxgc.agents.events import answer  # noqa: PLC0415

        return answer(event, settings, raw)
    except Exception as error:  # noqa: BLE001 (the agent must go on whatever happens)
        from ctxgc.agents.events import log_failure  # noqa: PLC0415

        log_failure(settings, event, error)
        return b""


def _read(file: int) -> bytes:
    parts = []
    while part := os.read(file, 1 << 20):
        parts.append(part)
    return b"".join(parts)


def _write(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]


if __name__ == "__main__":
    sys.exit(run_hook())
