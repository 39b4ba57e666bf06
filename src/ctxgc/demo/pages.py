"""What the demo shows: sections of text about two plays, the screen they go to, and the report."""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TextIO

import msgspec

from ctxgc.core import Amount
from ctxgc.demo.run import ROOM_WINDOW, FirstCollection, Play, Watch, messages
from ctxgc.drawing import (
    STYLES,
    Column,
    Line,
    bar,
    chart,
    chart_columns,
    plain,
    rule,
    shortened,
    terminal_table,
    text_of,
    wrapped,
    zone,
)
from ctxgc.files import write_atomic
from ctxgc.insight import analyze_transcript, timeline_of
from ctxgc.wire.transcripts import open_transcript

_LONGEST_BAR = 56
_EXAMPLES = 6
_STUB_LINES = 8
_FOLDER = re.compile(r"cd /home/dev/\w+ && |/home/dev/\w+/")


def sections(room: Play, price: Play, width: int) -> Iterator[list[Line]]:
    """Yield the sections in the order of the story: a window that fills up, and one with room to spare.

    No line is wider than `width`.
    """
    for title, lines in _told(room, price, width):
        yield [rule(shortened(title, width - 4), width), *lines]


def _told(room: Play, price: Play, width: int) -> Iterator[tuple[str, list[Line]]]:
    yield "A session, twice", _session(room, price, width)
    yield f"{room.window:,} tokens: the window before each request", _window(room, width)
    if (first := room.first) is not None:
        yield (
            f"Request {first.request}, the soft limit is reached: one collection, asked for by hand",
            (_path(room, first, width)),
        )
        yield "What left, and the evidence that decided", _entries(first, width)
        yield "What stayed, and by which root", _roots(first, width)
    if room.by_itself:
        yield "Then by itself: what left for the price, and for room", _departures(room, width)
    if price.by_itself:
        said = f"In {price.window:,} tokens: what left for the price"
        yield said, _departures(price, width, _best(price))
    if any(play.recalled for play in (room, price)):
        yield "Back again, by the handle in its tombstone", _recalls(room, price)
    yield "The bill, in tokens, against what would really have been sent", _bill(room, price, width)
    yield f"The ledger of {room.window:,} tokens", _books(room, width)


def _text(text: str, width: int) -> list[Line]:
    return [plain(f"  {line}") for line in wrapped(text, width - 2)]


def _session(room: Play, price: Play, width: int) -> list[Line]:
    return _text(
        f"A scripted agent fixes tests, adds functions and reads logs: {room.messages:,} messages. "
        f"It runs in a Session with a window of {room.window:,} tokens, where room must be made, and "
        f"in one of {price.window:,}, where nothing has to leave, and only what pays does.",
        width,
    )


def _window(play: Play, width: int) -> list[Line]:
    marks = {play.threshold: "threshold", play.soft_limit: "soft limit", play.target: "target"}
    end = f"{len(play.fills):,} requests"
    columns = min(chart_columns(width, marks), len(play.fills))
    return [
        *chart(play.fills, width, marks),
        plain(f"      0{end:>{max(columns - 1, len(end) + 1)}}", "faint"),
    ]


# -- One collection


def _path(play: Play, first: FirstCollection, width: int) -> list[Line]:
    """Show the first collection by the stations of its path."""
    done = first.result
    stations = [((name, "name"), said) for name, said in _stations(first)]
    return [
        *terminal_table(("", Column(right=False, least=20, keep="all")), stations, width),
        _level("before", done.tokens_before, play.window, width),
        _level("after", done.tokens_after, play.window, width),
    ]


def _stations(first: FirstCollection) -> Iterator[tuple[str, str]]:
    done, live, won = first.result, first.liveness, first.result.details
    alive = f"{live.rooted} roots, {live.reached} more that they reach"
    rest = f"{live.segments - live.rooted - live.reached} unreachable, {live.superseded} of them superseded"
    yield "liveness", f"{live.segments} segments: {alive}; {rest}"
    size = sum(entry.segment.tokens or 0 for entry in first.entries)
    kept = f"{size - done.tokens_freed:,} of {size:,} tokens stay"
    yield "worth", f"{kept}: lines and names that nothing else in the view holds"
    cost = f"{won['tokens_won']:,} tokens won, {won['tokens_rewritten']:,} written anew"
    yield "price", f"{cost}: paid back after {won['requests_to_pay_back']} requests"
    need = done.tokens_before - first.target
    yield "room", f"the target is {first.target:,} tokens: {need:,} must go, whether it pays or not"
    kinds = Counter(entry.evidence.kind for entry in first.entries)
    said = ", ".join(f"{count} {kind}" for kind, count in kinds.items()).replace("_", " ")
    yield "plan", f"{len(first.plan)} entries: {said}; {first.plan.shortfall} tokens short"
    held = f"{first.must_stay - first.lost} of {first.must_stay} messages that must stay are as they were"
    yield "invariants", f"{first.violations} violations; {held}"
    yield "apply", f"{len(first.plan)} segments stashed, {done.tokens_freed:,} tokens freed"


def _level(name: str, tokens: int, window: int, width: int) -> Line:
    percent = 100 * tokens / window
    said = f" {tokens:>7,} tokens {percent:5.1f}%"
    drawn = bar(percent, min(_LONGEST_BAR, width - 14 - len(said)))
    return [(f"  {name:<12}", ""), *drawn, (said, "")]


def _entries(first: FirstCollection, width: int) -> list[Line]:
    lines: list[Line] = []
    for entry in first.entries[-_EXAMPLES:]:
        segment = entry.segment
        what = shortened(_local(segment.file_path or segment.command or ""), width - 24)
        evidence = shortened(_local(str(entry.evidence)), width - 24)
        size = f"{segment.tokens:>6,} tokens  "
        lines.append([(f"  {segment.segment_id:<6}", "name"), (size, ""), (what, "")])
        lines.append(plain(f"{'':24}{evidence}", "faint"))
    stubbed = [entry for entry in first.entries if 0 < entry.stub.count("\n") < _STUB_LINES]
    for entry in sorted(stubbed, key=lambda entry: -entry.stub.count("\n"))[:1]:
        lines.append(plain(f"  What is in the place of {entry.segment.segment_id} now:"))
        drawn = [f"    {shortened(line, width - 4)}" for line in entry.stub.splitlines()]
        lines += [plain(line, "faint") for line in drawn]
    return lines


def _local(text: str) -> str:
    """Return a text without the project's own folder."""
    return _FOLDER.sub("", text)


def _roots(first: FirstCollection, width: int) -> list[Line]:
    roots = first.liveness.roots
    rows = [(name, f"{n:,}", f"{tokens:,}") for name, (n, tokens) in roots.items()]
    return terminal_table(("root", "segments", "tokens"), rows, width)


# -- All collections


def _departures(play: Play, width: int, *more: str) -> list[Line]:
    groups: dict[str, list[tuple[int, str]]] = {}
    for evidence, tokens in play.departures():
        groups.setdefault(evidence.kind, []).append((tokens, str(evidence)))
    ordered = sorted(groups.items(), key=lambda item: -_tokens(item[1]))
    rows = [(kind.replace("_", " "), f"{len(g):,}", f"{_tokens(g):,}") for kind, g in ordered]
    largest = [_local(max(group)[1]) for _, group in ordered]
    return [
        plain(f"  {len(play.by_itself):,} collections before {len(play.fills):,} requests."),
        *(line for said in more for line in _text(said, width)),
        *terminal_table(("evidence", "messages", "tokens"), rows, width),
        *(plain(f"    {shortened(said, width - 4)}", "faint") for said in largest),
    ]


def _tokens(group: Iterable[tuple[int, str]]) -> int:
    return sum(tokens for tokens, _ in group)


def _best(play: Play) -> str:
    """Say what the largest collection won and cost."""
    done = max((r.details for r in play.results), key=lambda details: details["tokens_won"])
    return (
        f"The largest won {done['tokens_won']:,} tokens in each request from then on, and had "
        f"{done['tokens_rewritten']:,} written anew."
    )


def _recalls(*plays: Play) -> list[Line]:
    lines: list[Line] = []
    for play in plays:
        if (back := play.recalled) is not None:
            verdict = "the same bytes" if back.is_same else "OTHER BYTES"
            lines.append(
                plain(f"  {play.window:>7,}: {back.handle}: {back.tokens:,} tokens, {verdict}.")
            )
    return lines


def _bill(room: Play, price: Play, width: int) -> list[Line]:
    rows: list[tuple[str, ...]] = []
    for play in (room, price):
        books = play.savings
        sums = (books.requests, books.sent_tokens, books.counterfactual_tokens)
        bills = (books.bill, books.counterfactual_bill)
        row = (f"{play.window:,}", *(f"{n:,}" for n in sums), *(f"{bill:,.0f}" for bill in bills))
        rows.append((*row, f"{books.saved_percent:.1f}%"))
    return [
        *terminal_table(
            ("window", "requests", "sent", "without", "bill", "without", "saved"), rows, width
        ),
        *_text(
            "Without collections a request would hold all messages, but never more than the window.",
            width,
        ),
    ]


def _books(play: Play, width: int) -> list[Line]:
    ledger = play.ledger
    sums = (
        ("ingested", ledger.ingested),
        ("working", ledger.working),
        ("stashed", ledger.stashed),
        ("deleted", ledger.deleted),
    )
    rows = [_row(name, amount) for name, amount in sums]
    adds_up = "ingested = working + stashed + deleted: nothing was lost."
    return [
        *terminal_table(("", "segments", "tokens"), rows, width),
        plain(f"  {adds_up if ledger.balanced() else 'The figures do NOT add up.'}"),
        *_text(
            f"{play.deleted_of_session} segments of the session were deleted; the others are old stubs and "
            "notes of the collector.",
            width,
        ),
    ]


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
    drawer = importlib.import_module("ctxgc.dashboard.report")
    pruning = importlib.import_module("ctxgc.cli.prune")
    transcript = open_transcript(session)
    found = analyze_transcript(
        transcript,
        context_limit=ROOM_WINDOW,
        preview=lambda: pruning.preview_pruning(session, ROOM_WINDOW),
    )
    timeline = timeline_of(transcript, context_limit=ROOM_WINDOW)
    drawn: str = drawer.report_page(found, msgspec.json.encode(timeline))
    return drawn


# -- The screen: coloured with rich on a terminal, else plain text


class Screen(Protocol):
    """What the demo draws on."""

    def line(self, line: Line) -> None:
        """Print one line."""

    def filling(self) -> Any:
        """Return a context manager that gives a function to show how full a window is."""


class PlainScreen:
    """Text without colours, for pipes and files, and if rich is not installed."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def line(self, line: Line) -> None:
        """Print a line."""
        print(text_of(line).rstrip(), file=self._stream)

    @contextmanager
    def filling(self) -> Iterator[Watch]:
        """Show nothing: the chart shows it afterwards."""
        yield lambda *_: None


class RichScreen:
    """Coloured text, and a live gauge of the window."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console  # noqa: PLC0415  an extra

        self._console = Console(file=stream, highlight=False)

    def line(self, line: Line) -> None:
        """Print a line in its styles."""
        self._console.print(_rich(line), no_wrap=True, overflow="crop", crop=True)

    @contextmanager
    def filling(self) -> Iterator[Watch]:
        """Show the window as it fills, on one line that disappears at the end."""
        from rich.live import Live  # noqa: PLC0415  an extra

        with Live(console=self._console, transient=True, refresh_per_second=20) as live:
            yield lambda *now: live.update(_rich(_gauge(*now)))


def open_screen(stream: TextIO) -> Screen:
    """Return the screen that fits a stream."""
    if stream.isatty() and importlib.util.find_spec("rich") is not None:
        return RichScreen(stream)
    return PlainScreen(stream)


def _gauge(window: int, count: int, percent: float) -> Line:
    name = zone(percent)
    return [
        (f"  {window:>7,} ", ""),
        *bar(percent, 60),
        (f" {percent:3.0f}% {name:<8}", name),
        (f" {count}", ""),
    ]


def _rich(line: Line) -> Any:
    from rich.text import Text  # noqa: PLC0415  an extra

    return Text.assemble(*((text, STYLES[style]) for text, style in line))
