"""Advising: what to do next, with the command that does it."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator

from ctxgc.insight.report import Advice, Insight, Row

_FULL = 70.0
_MUCH_GARBAGE = 15.0
_MUCH_BESIDE = 0.2
_HUGE_OUTPUT = 8_000
_MANY_READS = 4


def advise(found: Insight) -> list[Advice]:
    """Return concrete steps, the one that helps most first."""
    return list(_steps(found))


def _steps(found: Insight) -> Iterator[Advice]:
    path = shlex.quote(found.about.path)
    window, garbage = found.window, found.garbage
    if garbage.percent >= _MUCH_GARBAGE or window.percent >= _FULL:
        yield Advice(
            text=f"The window is {window.percent:.0f}% full; {garbage.percent:.0f}% of what was"
            " looked at is garbage. See what a collection would move out, and why:",
            command=f"ctxgc prune {path}",
        )
    yield from _outputs(found)
    yield from _reads(found.files)
    yield from _cache(found)
    if window.beside > _MUCH_BESIDE * window.limit:
        yield Advice(
            text=f"{window.beside:,} tokens stand beside the messages in every request: turn off"
            " tools and MCP servers that the project does not need."
        )
    if found.damaged:
        yield Advice(
            text=f"{found.damaged} damaged lines were passed over. See which:",
            command=f"ctxgc doctor {path}",
        )


def _outputs(found: Insight) -> Iterator[Advice]:
    huge = [row for row in found.tools if row.largest >= _HUGE_OUTPUT]
    agents = {"claude_code": "claude-code", "codex": "codex"}
    if not huge:
        return
    worst = max(huge, key=lambda row: row.largest)
    agent = agents.get(found.about.kind)
    yield Advice(
        text=f"One output of {worst.name} took {worst.largest:,} tokens. ctxgc can stash such outputs"
        " as they arrive and leave the lines that matter:",
        command=f"ctxgc install {agent}" if agent else "ctxgc mcp",
    )


def _reads(files: list[Row]) -> Iterator[Advice]:
    often = [row for row in files if row.count >= _MANY_READS]
    if often:
        worst = max(often, key=lambda row: row.tokens)
        yield Advice(
            text=f"{worst.name} came in {worst.count} times, {worst.tokens:,} tokens in all: ask for"
            " the lines that are needed, or pin it once."
        )


def _cache(found: Insight) -> Iterator[Advice]:
    breaks = found.cache.breaks
    if not breaks:
        return
    why, times = Counter(each.why for each in breaks).most_common(1)[0]
    says = {
        "idle too long": "a longer cache life pays when pauses are usual",
        "the prefix changed": "something rewrites the beginning of the request",
        "model changed": "changing models in a session writes the whole window again",
        "compaction": "collecting in time keeps the window from being rewritten whole",
    }
    yield Advice(
        text=f"The prompt cache broke {_times(len(breaks))} and {found.cache.lost:,} tokens were"
        f" written again. Most often, {_times(times)}: {why} ({says[why]})."
    )


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"
