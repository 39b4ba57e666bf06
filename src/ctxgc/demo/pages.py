"""What the demo shows: sections of text about a run, the screen they go to, and the report."""

from __future__ import annotations

import importlib
import importlib.util
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TextIO

import msgspec

from ctxgc.collector import Collection
from ctxgc.core import Amount
from ctxgc.demo.run import DemoRun, Kept, Removal, messages
from ctxgc.drawing import STYLES, Line, bar, chart, plain, shortened, terminal_table, text_of, zone
from ctxgc.files import write_atomic
from ctxgc.insight import analyze_transcript
from ctxgc.wire.transcripts import open_transcript

_WIDTH = 98
_CHART_WIDTH = 74
_EXAMPLES = 4


def sections(run: DemoRun) -> Iterator[list[Line]]:
    """Yield the sections in the order of the story."""
    yield _session(run)
    yield _window(run)
    if run.full is not None:
        yield _collection(run, run.full)
        yield _why(run, "fill", "What left in the full collection, and why")
    if run.steps:
        yield _steps(run)
        yield _why(run, "steps", "What left step by step, and why")
    if run.kept:
        yield _chains(run.kept)
    yield _books(run)


def _title(text: str) -> Line:
    return plain(f"── {text} ".ljust(_WIDTH, "─"), "title")


def _session(run: DemoRun) -> list[Line]:
    came = run.ledger.ingested
    times = came.tokens / run.window
    return [
        _title("A session"),
        plain(
            f"  A scripted agent fixes tests, adds functions and reads logs: {came.segments:,} "
            f"segments, {came.tokens:,} tokens."
        ),
        plain(
            f"  The window holds {run.window:,} tokens: the session is {times:.1f} times as long."
        ),
    ]


def _window(run: DemoRun) -> list[Line]:
    options = run.options
    marks = {
        int(options.hard_limit_percent): "hard limit",
        int(options.soft_limit_percent): "soft limit",
        int(options.target_percent): "target",
    }
    percents = [100 * sample.tokens / run.window for sample in run.samples]
    drawn = chart(percents, _CHART_WIDTH, marks)
    return [_title("The window over time"), *drawn, plain(f"      {_axis(run)}", "faint")]


def _axis(run: DemoRun) -> str:
    """Label the ends of the chart, and the moment of the full collection."""
    end = f"{run.ledger.ingested.segments:,} segments"
    filled = sum(sample.phase == "fill" for sample in run.samples)
    column = _CHART_WIDTH * filled // len(run.samples)
    start = f"{'0':<{column - 1}}▲ full collection" if run.full is not None else "0"
    return f"{start}{end:>{_CHART_WIDTH - len(start)}}"


def _collection(run: DemoRun, full: Collection) -> list[Line]:
    plan = full.plan
    ways = (
        ("stashed", plan.stash_segments),
        ("evacuated", plan.evacuate_segments),
        ("compressed", plan.compress_segments),
        ("deleted", plan.delete_segments),
    )
    how = ", ".join(f"{len(ids)} {name}" for name, ids in ways if ids)
    return [
        _title("The full collection"),
        _level("before", full.tokens_before, run.window),
        _level("after", full.tokens_after, run.window),
        plain(
            f"  {full.tokens_freed:,} tokens freed, {plan.target_tokens or 0:,} required: {how}."
        ),
    ]


def _level(name: str, tokens: int, window: int) -> Line:
    percent = 100 * tokens / window
    return [(f"  {name:<7}", ""), *bar(percent, 60), (f" {tokens:>7,} tokens {percent:5.1f}%", "")]


def _steps(run: DemoRun) -> list[Line]:
    moved = sum(len(step.plan) for step in run.steps)
    freed = sum(step.tokens_freed for step in run.steps)
    most = max(len(step.plan) for step in run.steps)
    arrivals = sum(sample.phase == "steps" for sample in run.samples)
    return [
        _title("Then a small step after each message"),
        plain(
            f"  {arrivals} messages, {len(run.steps)} steps that removed something: {moved} segments, "
            f"{freed:,} tokens, at most {most} at once."
        ),
    ]


def _why(run: DemoRun, phase: str, title: str) -> list[Line]:
    left = [departure for departure in run.departures if departure.phase == phase]
    groups: dict[str, list[Removal]] = {}
    for departure in left:
        groups.setdefault(departure.because, []).append(departure)
    ordered = sorted(groups.items(), key=lambda item: -sum(d.freed for d in item[1]))
    rows = [("reason", "segments", "tokens"), *(_tally(name, group) for name, group in ordered)]
    rows.append(_tally("all", left))
    return [
        _title(title),
        *terminal_table(rows),
        plain(""),
        *_examples([group for _, group in ordered]),
    ]


def _tally(name: str, group: list[Removal]) -> tuple[str, str, str]:
    return name, f"{len(group):,}", f"{sum(departure.freed for departure in group):,}"


def _examples(groups: list[list[Removal]]) -> Iterator[Line]:
    """Show one segment for each of the first reasons: the largest."""
    for group in groups[:_EXAMPLES]:
        departure = max(group, key=lambda departure: departure.freed)
        yield [
            (f"  {departure.segment.segment_id:<5} ", "name"),
            (shortened(departure.reason, _WIDTH - 8), "faint"),
        ]


def _chains(kept: list[Kept]) -> list[Line]:
    lines = [_title("Why these stayed: from a root, link by link")]
    for one in kept:
        lines.append(
            [
                (f"  {one.segment.segment_id:<5} ", "name"),
                (shortened(one.segment.text, _WIDTH - 8), ""),
            ]
        )
        root, *rest = one.chain
        lines.append(plain(f"        {root.segment_id} is a root: {root.via}", "faint"))
        lines.extend(
            plain(f"        {'  ' * depth}└─ {hop.segment_id} ({hop.via})", "faint")
            for depth, hop in enumerate(rest)
        )
    return lines


def _books(run: DemoRun) -> list[Line]:
    ledger = run.ledger
    sums = (
        ("ingested", ledger.ingested),
        ("working", ledger.working),
        ("stashed", ledger.stashed),
        ("deleted", ledger.deleted),
    )
    rows = [("", "segments", "tokens"), *(_row(name, amount) for name, amount in sums)]
    adds_up = "ingested = working + stashed + deleted: nothing was lost."
    verdict = adds_up if ledger.balanced() else "The figures do NOT add up."
    return [_title("The ledger"), *terminal_table(rows), plain(f"  {verdict}")]


def _row(name: str, amount: Amount) -> tuple[str, str, str]:
    return name, f"{amount.segments:,}", f"{amount.tokens:,}"


# -- The report: the session as a transcript, and the page of `ctxgc analyze` about it


SESSION = "session.jsonl"
PAGE = "report.html"


def write_report(folder: Path, segments: int = 1_000, seed: int = 7) -> Path:
    """Write the session and its page to a folder, which is created if needed; return the page's path.

    The same session gives the same bytes. Raises OSError if the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    session, page = folder / SESSION, folder / PAGE
    write_atomic(session, msgspec.json.Encoder().encode_lines(messages(segments, seed)))
    write_atomic(page, _page(session).encode())
    return page


def _page(session: Path) -> str:
    # By name: the command line is on the same layer as this room, not below it.
    drawer = importlib.import_module("ctxgc.cli.analyze_page")
    logging.getLogger("ctxgc").addHandler(
        logging.NullHandler()
    )  # alarms of the replay are not for the user
    drawn: str = drawer.report_page(analyze_transcript(open_transcript(session)))
    return drawn


# -- The screen: coloured with rich on a terminal, else plain text


Show = Callable[[int, int], None]


class Screen(Protocol):
    """What the demo draws on."""

    def line(self, line: Line) -> None:
        """Print one line."""

    def filling(self, window: int) -> Any:
        """Return a context manager that gives a function to show segments and tokens with."""


class PlainScreen:
    """Text without colours, for pipes and files, and if rich is not installed."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def line(self, line: Line) -> None:
        """Print a line."""
        print(text_of(line).rstrip(), file=self._stream)

    @contextmanager
    def filling(self, window: int) -> Iterator[Show]:  # noqa: ARG002
        """Show nothing: the chart shows it afterwards."""
        yield lambda _segments, _tokens: None


class RichScreen:
    """Coloured text, and a live gauge of the window."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console  # noqa: PLC0415  an extra

        self._console = Console(file=stream, highlight=False)

    def line(self, line: Line) -> None:
        """Print a line in its styles."""
        self._console.print(_rich(line), no_wrap=True, overflow="crop", crop=True)

    @contextmanager
    def filling(self, window: int) -> Iterator[Show]:
        """Show the window as it fills, on one line that disappears at the end."""
        from rich.live import Live  # noqa: PLC0415  an extra

        with Live(console=self._console, transient=True, refresh_per_second=20) as live:
            yield lambda segments, tokens: live.update(_rich(_gauge(segments, tokens, window)))


def open_screen(stream: TextIO) -> Screen:
    """Return the screen that fits a stream."""
    if stream.isatty() and importlib.util.find_spec("rich") is not None:
        return RichScreen(stream)
    return PlainScreen(stream)


def _gauge(segments: int, tokens: int, window: int) -> Line:
    percent = 100 * tokens / window
    name = zone(percent)
    return [
        ("  window ", ""),
        *bar(percent, 60),
        (f" {percent:3.0f}% {name:<8}", name),
        (f" {segments}", ""),
    ]


def _rich(line: Line) -> Any:
    from rich.text import Text  # noqa: PLC0415  an extra

    return Text.assemble(*((text, STYLES[style]) for text, style in line))
