"""What the demo says: one function per section, from a run to lines of text."""

from __future__ import annotations

from collections.abc import Iterator

from ctxgc.core.apply import Collection
from ctxgc.core.ledger import Amount
from ctxgc.demo.run import Departure, Kept, Run
from ctxgc.drawing.terminal import Line, bar, chart, plain, shortened, table

WIDTH = 98
CHART_WIDTH = 74
EXAMPLES = 4


def sections(run: Run) -> Iterator[list[Line]]:
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
    return plain(f"── {text} ".ljust(WIDTH, "─"), "title")


def _session(run: Run) -> list[Line]:
    came = run.ledger.ingested
    times = came.tokens / run.window
    return [
        _title("A session"),
        plain(
            f"  An invented agent fixes tests, changes values and reads logs: {came.segments:,} "
            f"segments, {came.tokens:,} tokens."
        ),
        plain(
            f"  Its window holds {run.window:,} tokens: the session is {times:.1f} windows long."
        ),
    ]


def _window(run: Run) -> list[Line]:
    options = run.options
    marks = {
        int(options.hard_percent): "hard limit",
        int(options.soft_percent): "soft limit",
        int(options.target_percent): "target",
    }
    percents = [100 * sample.tokens / run.window for sample in run.samples]
    drawn = chart(percents, CHART_WIDTH, marks)
    return [_title("The window over time"), *drawn, plain(f"      {_axis(run)}", "faint")]


def _axis(run: Run) -> str:
    """Name the ends of the chart, and the moment of the full collection."""
    end = f"{run.ledger.ingested.segments:,} segments"
    filled = sum(sample.phase == "fill" for sample in run.samples)
    column = CHART_WIDTH * filled // len(run.samples)
    start = f"{'0':<{column - 1}}▲ full collection" if run.full is not None else "0"
    return f"{start}{end:>{CHART_WIDTH - len(start)}}"


def _collection(run: Run, full: Collection) -> list[Line]:
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
            f"  {full.tokens_freed:,} tokens freed, {plan.target_tokens or 0:,} asked for: {how}."
        ),
    ]


def _level(name: str, tokens: int, window: int) -> Line:
    percent = 100 * tokens / window
    return [(f"  {name:<7}", ""), *bar(percent, 60), (f" {tokens:>7,} tokens {percent:5.1f}%", "")]


def _steps(run: Run) -> list[Line]:
    moved = sum(len(step.plan) for step in run.steps)
    freed = sum(step.tokens_freed for step in run.steps)
    most = max(len(step.plan) for step in run.steps)
    arrivals = sum(sample.phase == "steps" for sample in run.samples)
    return [
        _title("Then a small step after each arrival"),
        plain(
            f"  {arrivals} arrivals, {len(run.steps)} steps that moved something: {moved} segments, "
            f"{freed:,} tokens, at most {most} at once."
        ),
    ]


def _why(run: Run, phase: str, title: str) -> list[Line]:
    left = [departure for departure in run.departures if departure.phase == phase]
    groups: dict[str, list[Departure]] = {}
    for departure in left:
        groups.setdefault(departure.because, []).append(departure)
    ordered = sorted(groups.items(), key=lambda item: -sum(d.freed for d in item[1]))
    rows = [("reason", "segments", "tokens"), *(_tally(name, group) for name, group in ordered)]
    rows.append(_tally("all", left))
    return [_title(title), *table(rows), plain(""), *_examples([group for _, group in ordered])]


def _tally(name: str, group: list[Departure]) -> tuple[str, str, str]:
    return name, f"{len(group):,}", f"{sum(departure.freed for departure in group):,}"


def _examples(groups: list[list[Departure]]) -> Iterator[Line]:
    """Show one segment for each of the first reasons: the largest."""
    for group in groups[:EXAMPLES]:
        departure = max(group, key=lambda departure: departure.freed)
        yield [
            (f"  {departure.segment.segment_id:<5} ", "name"),
            (shortened(departure.reason, WIDTH - 8), "faint"),
        ]


def _chains(kept: list[Kept]) -> list[Line]:
    lines = [_title("Why these stayed: from a root, link by link")]
    for one in kept:
        lines.append(
            [
                (f"  {one.segment.segment_id:<5} ", "name"),
                (shortened(one.segment.text, WIDTH - 8), ""),
            ]
        )
        root, *rest = one.chain
        lines.append(plain(f"        {root.segment_id} is a root: {root.via}", "faint"))
        lines.extend(
            plain(f"        {'  ' * depth}└─ {hop.segment_id} ({hop.via})", "faint")
            for depth, hop in enumerate(rest)
        )
    return lines


def _books(run: Run) -> list[Line]:
    ledger = run.ledger
    sums = (
        ("ingested", ledger.ingested),
        ("working", ledger.working),
        ("stashed", ledger.stashed),
        ("deleted", ledger.deleted),
    )
    rows = [("", "segments", "tokens"), *(_row(name, amount) for name, amount in sums)]
    adds_up = "ingested = working + stashed + deleted: nothing was lost."
    verdict = adds_up if ledger.balanced() else "The books do NOT add up."
    return [_title("The books"), *table(rows), plain(f"  {verdict}")]


def _row(name: str, amount: Amount) -> tuple[str, str, str]:
    return name, f"{amount.segments:,}", f"{amount.tokens:,}"
