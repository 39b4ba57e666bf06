"""A session that lives long: what an append, a request, memory, the store and a reopening cost as it grows.

python -m bench.life                     50,000 messages in a sqlite store
python -m bench.life --messages 2000     fewer
"""

from __future__ import annotations

import gc
import sys
import tempfile
from pathlib import Path
from random import Random
from time import process_time
from typing import Any

import msgspec

from bench.session_case import QuarterCounter
from bench.tables import duration, print_table, run
from ctxgc import Session
from ctxgc.session import RECALL_CALL

Json = dict[str, Any]

MESSAGES = 50_000
POINTS = 10
WINDOW = 20_000
NAME = "life"


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """How a session is doing after some messages; times are means since the last moment."""

    messages: int
    append: float
    view: float
    memory: float
    store: float
    reopen: float
    segments: int


def main(arguments: list[str]) -> int:
    """Live through a session and print its curves."""
    count = (
        int(arguments[arguments.index("--messages") + 1]) if "--messages" in arguments else MESSAGES
    )
    with tempfile.TemporaryDirectory() as folder:
        moments = live(count, Path(folder) / "life.db")
    print(
        f"{count:,} messages in a window of {WINDOW:,} tokens, sqlite; processor time of this process:\n"
    )
    rows: list[tuple[str, ...]] = [
        ("messages", "segments", "append", "messages()", "memory", "store", "reopen", "")
    ]
    most = max(moment.memory for moment in moments)
    for at in moments:
        times = map(duration, (at.append, at.view))
        sizes = (f"{at.memory:.0f} MB", f"{at.store:.1f} MB", duration(at.reopen))
        bar = "█" * round(20 * at.memory / most)
        rows.append((f"{at.messages:,}", f"{at.segments:,}", *times, *sizes, bar.ljust(20)))
    print_table(rows)
    return 0


def live(count: int, path: Path) -> list[Moment]:
    """Return what was measured at some moments of a session of so many messages."""
    session = _opened(path)
    session.tools("openai")
    found: list[Moment] = []
    appends = views = 0.0
    since = sent = 0
    for number, message in enumerate(_messages(count), 1):
        start = process_time()
        session.append(message)
        appends, since = appends + process_time() - start, since + 1
        if message["role"] != "assistant":
            start = process_time()
            session.messages()
            views, sent = views + process_time() - start, sent + 1
        if number % max(1, count // POINTS) == 0:
            session.close()
            del session
            gc.collect()
            start = process_time()
            session = _opened(path)
            reopen = process_time() - start
            found.append(
                Moment(
                    messages=number,
                    append=appends / since,
                    view=views / max(1, sent),
                    memory=_resident(),
                    store=path.stat().st_size / 1e6,
                    reopen=reopen,
                    segments=len(session.segments()),
                )
            )
            appends, views, since, sent = 0.0, 0.0, 0, 0
    return found


def _opened(path: Path) -> Session:
    return Session(
        WINDOW, store=f"sqlite:{path}", session_id=NAME, counter=QuarterCounter(),
        recall_call=RECALL_CALL,
    )  # fmt: skip


def _resident() -> float:
    """Return the megabytes of memory that this process has now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096 / 1e6


def _messages(count: int) -> list[Json]:
    """Return an agent's work on one job after the other: calls, logs with names and values, requests."""
    random, made = (
        Random(7),
        [_said("user", "Keep the nightly build green, and never touch release.yml.")],
    )
    while len(made) < count:
        number = len(made)
        if number % 50 < 2:
            made.append(_said("user", f"Now look at job {number} in src/module_{number % 50}.py."))
            continue
        call = {"name": "bash", "arguments": f'{{"command": "cat build_{number}.log"}}'}
        asked = {"id": f"call_{number}", "type": "function", "function": call}
        made.append({"role": "assistant", "content": None, "tool_calls": [asked]})
        log = "\n".join(
            f"step {line} of module_{random.randrange(400)}.py took {random.randrange(9_000)} ms"
            for line in range(random.randrange(5, 40))
        )
        made.append({"role": "tool", "tool_call_id": f"call_{number}", "content": log})
    return made[:count] if made[count - 1]["role"] != "assistant" else made[: count + 1]


def _said(role: str, text: str) -> Json:
    return {"role": role, "content": text}


if __name__ == "__main__":
    sys.exit(run(main, __doc__))
