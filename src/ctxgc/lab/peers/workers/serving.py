"""The loop that every worker has: JSON lines in, JSON lines out, nothing else on standard output."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]
Edit = Callable[[list[Json]], list[Any]]


def serve(begin: Callable[[Json], Edit]) -> None:
    """Answer questions until standard input ends.

    `{"open": settings}` begins a run: `begin` returns how a history is edited. `{"history": [...]}`
    adds messages to it, and is answered by the view: messages, or the numbers of those that stand
    in it as they came.
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # What a library prints must not get between the answers.
    os.dup2(2, 1)
    history: list[Json] = []
    edit: Edit = list
    for line in sys.stdin:
        question = json.loads(line)
        if "open" in question:
            history, edit = [], begin(question["open"])
            answer: Json = {"ready": True}
        else:
            history.extend(question["history"])
            answer = {"view": edit(history)}
        answers.write(json.dumps(answer, ensure_ascii=False) + "\n")
        answers.flush()


def numbered(view: list[Json], history: list[Json]) -> list[Any]:
    """Return a view with numbers for the messages that stand in it as they came, in their order."""
    entries: list[Any] = []
    start = 0
    for message in view:
        number = next((n for n in range(start, len(history)) if history[n] == message), None)
        entries.append(message if number is None else number)
        start = start if number is None else number + 1
    return entries
