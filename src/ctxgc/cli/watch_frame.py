"""One picture of a session: how full its window is, how it got there, and what could leave."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from ctxgc.cli.stash_store import printable
from ctxgc.core import age_text, mask_secrets
from ctxgc.drawing import Line, bar, chart, plain, shortened, terminal_bars

_MARKS = {70: "warning", 90: "hard limit"}
_BAR = 40
_TOOLS_HEAD = 2


class RequestSample(NamedTuple):
    """The tokens of one request, and in which window of the session it was."""

    tokens: int
    window: int


class ToolSample(NamedTuple):
    """A tool call, and the size of its result; None while it runs."""

    name: str
    said: str
    tokens: int | None
    failed: bool


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to see of a session at one moment; `called` is what a command finds it by."""

    name: str
    path: str
    called: str
    kind: str
    project: str
    model: str
    messages: int
    tokens: int
    limit: int
    percent: float
    zone: str
    window: int
    samples: list[RequestSample]
    tools: list[ToolSample]
    garbage: dict[str, int]
    seconds_quiet: float

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-ready data."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        found["tools"] = [tool._asdict() for tool in self.tools]
        found["samples"] = [sample._asdict() for sample in self.samples]
        return found


def draw(frame: Frame, width: int, height: int | None = None) -> list[Line]:
    """Return the lines of a picture that is at most so wide and high.

    Where the height does not do, the oldest tools go first, then the chart.
    """
    head, over_time, tools, garbage = (
        _head(frame), _over_time(frame, width), _tools(frame), _garbage(frame)
    )  # fmt: skip
    if height is not None:
        room = height - len(head) - len(garbage)
        over_time = over_time if len(over_time) <= room else []
        room -= len(over_time)
        tools = tools[:room] if room > _TOOLS_HEAD else []
    return [_cut(line, width) for line in (*head, *over_time, *tools, *garbage)]


def _head(frame: Frame) -> list[Line]:
    about = ", ".join(filter(None, (frame.kind.replace("_", " "), frame.model, frame.project)))
    filled = f"{frame.tokens:,} of {frame.limit:,} tokens ({frame.percent:.0f}%)"
    window = f", window {frame.window}" if frame.window > 1 else ""
    return [
        [(printable(frame.name), "name"), (f"  {printable(about)}", "faint")],
        [*bar(frame.percent, _BAR), (f" {frame.zone}", frame.zone)],
        plain(
            f"{filled}, {frame.messages} messages{window}, last written {_ago(frame.seconds_quiet)}"
        ),
    ]


def _ago(seconds: float) -> str:
    return "now" if seconds < 2 else f"{age_text(seconds)} ago"


def _over_time(frame: Frame, width: int) -> list[Line]:
    percents = [100.0 * sample.tokens / frame.limit for sample in frame.samples]
    if len(percents) < 2:
        return []
    return [plain(""), plain("fill over time", "title"), *chart(percents, width - 20, _MARKS)]


def _tools(frame: Frame) -> list[Line]:
    if not frame.tools:
        return []
    return [plain(""), plain("last tools", "title"), *map(_tool, reversed(frame.tools))]


def _tool(tool: ToolSample) -> Line:
    said = printable(shortened(mask_secrets(tool.said), 60))
    if tool.tokens is None:
        return [(f"  {'...':>8}  {printable(tool.name)} ", "name"), (f"{said} (running)", "faint")]
    style = "critical" if tool.failed else ""
    return [(f"  {tool.tokens:>8,}  {printable(tool.name)} ", style), (said, "faint")]


def _garbage(frame: Frame) -> list[Line]:
    total = sum(frame.garbage.values())
    if not total:
        return [plain(""), plain("no garbage: everything is reachable", "faint")]
    rows = sorted(frame.garbage.items(), key=lambda row: -row[1])
    share = 100.0 * total / max(1, frame.tokens)
    lines = terminal_bars([(name, float(n), f"{n:,} tokens") for name, n in rows], _BAR // 2)
    advice = f"what would leave: ctxgc prune {printable(frame.called)}"
    return [
        plain(""),
        plain(f"garbage: {total:,} tokens, {share:.0f}%", "title"),
        *lines,
        plain(advice, "faint"),
    ]


def _cut(line: Line, width: int) -> Line:
    """A line that would wrap would break the picture."""
    cut: Line = []
    for text, style in line:
        cut.append((text[:width], style))
        width -= len(text[:width])
    return cut
