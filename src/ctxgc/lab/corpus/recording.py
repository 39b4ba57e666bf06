"""The corpus: which runs it has, and how each is made from its seed."""

from __future__ import annotations

import gzip
import json
from typing import Any, NamedTuple

from ctxgc.lab.corpus.agent import Agent
from ctxgc.lab.corpus.project import Project
from ctxgc.lab.corpus.recorder import Recorder
from ctxgc.lab.corpus.stories import STORIES
from ctxgc.lab.corpus.words import Chance

SOURCE = "ctxgc demo corpus: synthetic, a scripted agent on a generated project"
CHARS_PER_TOKEN = 3.3


class Plan(NamedTuple):
    """A run to make: its number, the project that it works on, and about how long it is in tokens."""

    number: int
    project: int
    tokens: int


PLANS = tuple(
    Plan(number, project, tokens)
    for number, (project, tokens) in enumerate(
        [
            (1, 10_000), (1, 24_000), (2, 14_000), (3, 18_000), (3, 60_000), (4, 30_000),
            (5, 36_000), (6, 42_000), (6, 12_000), (7, 48_000), (8, 54_000), (9, 66_000),
            (10, 78_000), (11, 90_000), (12, 104_000), (12, 112_000),
        ],
        start=1,
    )
)  # fmt: skip


def record(plan: Plan) -> dict[str, Any]:
    """Return a run as a line of the corpus."""
    project = Project(Chance(f"project {plan.project}"), 4 + plan.project % 4)
    chance = Chance(f"run {plan.number}")
    project.chance = chance
    recorder = Recorder(chance, _system(project))
    agent = Agent(chance, project, recorder)
    while recorder.chars < plan.tokens * CHARS_PER_TOKEN:
        chance.choice(STORIES)(agent)
    return {
        "id": f"demo-{plan.number:02}",
        "group": f"demo-project-{plan.project:02}",
        "source": SOURCE,
        "messages": recorder.messages,
        "times": recorder.times,
    }


def corpus_text() -> bytes:
    """Return all runs as JSON lines."""
    lines = (json.dumps(record(plan), ensure_ascii=False, separators=(",", ":")) for plan in PLANS)
    return "".join(f"{line}\n" for line in lines).encode()


def packed(text: bytes) -> bytes:
    """Return the text compressed, without the time of day."""
    return gzip.compress(text, 9, mtime=0)


def _system(project: Project) -> str:
    return (
        f"You are a coding agent. You work on {project.package} in {project.root} with the tools "
        "Read, Edit, Write, Grep, Bash and TodoWrite.\n\n"
        "- Read a file before you edit it. `old_string` must match the file exactly.\n"
        "- Run the tests after each change, and commit what passes.\n"
        "- Keep a todo list for work of several steps.\n"
        f"- The code is Python 3.12, in src/{project.package}, its tests in tests/.\n"
        "- Answer briefly; name files, functions and commits."
    )
