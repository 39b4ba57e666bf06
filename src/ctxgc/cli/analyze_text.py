"""What `ctxgc analyze` shows in a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from ctxgc.cli.output import printable, size_text
from ctxgc.drawing import (
    Column,
    Entry,
    Line,
    bar,
    chart,
    chart_columns,
    count,
    plain,
    rule,
    shortened,
    terminal_bars,
    terminal_table,
    wrapped,
)
from ctxgc.insight import Bill, BillLine, Insight, UsageRow, bill_cost, bill_sentence
from ctxgc.session import mask_secrets

_BAR = 40
_BEFORE_NAME = 40
_ZONE_MARKS = {70: "warning"}
_NAMES = {"claude_code": "Claude Code", "codex": "Codex", "plain": "messages"}


def report_lines(found: Insight, *, top: int, width: int) -> Iterator[Line]:
    """Yield the report line by line, none wider than `width` but commands and paths."""
    parts = (
        ("Tokens by source", _rows(found.sources, top, width, _sum(found.sources))),
        ("Tokens by tool", _tool_rows(found.tools, top, width)),
        ("Tokens by file", _rows(found.files, top, width, found.tokens, path=True)),
        ("Largest turns", _turn_rows(found, top, width)),
        ("Garbage", _garbage(found, top, width)),
        ("Bill", _bill(found, width)),
        ("Prompt cache", _cache(found, width)),
        ("Damaged lines", _damage(found, top, width)),
        ("What to do next", _advice(found, width)),
    )
    yield from _about(found, width)
    yield from _fill(found, width)
    for title, lines in parts:
        yield from _section(title, lines, width)
    for note in found.notes:
        yield from _faint(note, width)


def _section(title: str, lines: Sequence[Line], width: int) -> Iterator[Line]:
    if not lines:
        return
    yield plain("")
    yield rule(title, width)
    yield from lines


def _faint(text: str, width: int) -> list[Line]:
    return [plain(f"  {line}", "faint") for line in wrapped(text, width - 2)]


def _about(found: Insight, width: int) -> Iterator[Line]:
    about, window = found.about, found.window
    who = [_NAMES[about.kind], about.version or about.format, about.model, size_text(about.bytes)]
    yield [("  ", ""), (_clean(about.session_id or about.path, width - 2), "title")]
    yield from _faint(" · ".join(_clean(word, 60) for word in who if word), width)
    if about.project:
        yield plain(f"  {_path(about.project, width - 2)}", "faint")
    yield plain("")
    share = f" {window.percent:.0f}% of {window.limit:,}"
    said = f" {window.zone}"
    yield [
        ("  window now  ", ""),
        *bar(window.percent, min(_BAR, width - 14 - len(share) - len(said))),
        (share, window.zone),
        (said, ""),
    ]
    yield plain(f"  {window.tokens:,} tokens, {count(window.messages, 'message')}", "faint")
    if window.beside:
        outside = "system prompt, tools, files re-attached after compaction"
        yield from _faint(f"{window.beside:,} tokens not in the transcript ({outside})", width)
    whole = (
        f"{count(len(found.turns), 'turn')}, {count(found.requests, 'request')},"
        f" {count(found.messages, 'entry', 'entries')},"
        f" {count(found.compactions, 'compaction')}, {found.tokens:,} tokens in the whole session"
    )
    yield from _faint(whole, width)


def _fill(found: Insight, width: int) -> Iterator[Line]:
    if len(found.fill) < 2:
        return
    percents = [min(100.0, point.percent) for point in found.fill]
    drawn = chart(percents, width, _ZONE_MARKS)
    columns = min(chart_columns(width, _ZONE_MARKS), len(percents))
    last = f"{found.requests:,} requests"
    below = f"      1{last.rjust(max(columns - 1, len(last) + 1))}"
    zones = [f"{requests:,} {zone}" for zone, requests in found.zones.items() if requests]
    yield from _section("The window at each request", [*drawn, plain(below, "faint")], width)
    yield plain(f"      requests by zone: {', '.join(zones)}", "faint")


def _rows(
    rows: list[UsageRow], top: int, width: int, whole: int, *, path: bool = False
) -> list[Line]:
    shown = [
        (
            _clean(row.name, width, keep="end" if path else "start"),
            float(row.tokens),
            f"{row.tokens:,}",
            _share(row.tokens, whole),
            f"{row.window_tokens:,} now",
            *((count(row.count, "call"),) if path else ()),
        )
        for row in rows[:top]
        if row.tokens
    ]
    return terminal_bars(shown, width, keep="end" if path else "start")


def _tool_rows(rows: list[UsageRow], top: int, width: int) -> list[Line]:
    shown = [
        (
            _clean(row.name, width),
            float(row.tokens),
            f"{row.tokens:,}",
            count(row.count, "call"),
            f"{row.failed:,} failed" if row.failed else "",
            f"largest {row.largest:,}",
        )
        for row in rows[:top]
    ]
    return terminal_bars(shown, width)


def _turn_rows(found: Insight, top: int, width: int) -> list[Line]:
    ranked = sorted(found.turns, key=lambda turn: (-turn.tokens, turn.number))[:top]
    shown = [
        (
            f"{turn.number:>3} {_clean(turn.title, width)}",
            float(turn.tokens),
            f"{turn.tokens:,}",
            count(turn.calls, "call"),
            f"line {turn.line}",
        )
        for turn in ranked
        if turn.tokens
    ]
    return terminal_bars(shown, width)


def _garbage(found: Insight, top: int, width: int) -> list[Line]:
    garbage = found.garbage
    if not garbage.tokens:
        return []
    rows = [
        (each.reason, float(each.tokens), f"{each.tokens:,}", count(each.count, "segment"))
        for each in garbage.reasons
        if each.count
    ]
    share = f"{garbage.tokens:,} of {garbage.of_tokens:,} tokens ({garbage.percent:.0f}%)"
    head = f"  {share} in the window now"
    dead = [
        (f"line {each.line}", f"{each.tokens:,}", each.how or each.reason, _what(each.name, width))
        for each in garbage.largest[: max(1, top // 2)]
    ]
    columns = ("", "", Column(least=11), Column(right=False, least=16))
    largest = terminal_table(columns, _all_faint(dead), width, indent="    ")
    return [plain(head), *terminal_bars(rows, width), *largest]


def _bill(found: Insight, width: int) -> list[Line]:
    bill = found.bill
    if not bill.without.spend.requests:
        return []
    named = (
        ("paid, as reported", bill.paid),
        ("sending everything", bill.without),
        ("with collections", bill.with_),
        ("besides: subagents", bill.subagents),
    )
    lines = terminal_table(
        _BILL_COLUMNS, [_bill_row(name, line, bill) for name, line in named if line], width
    )
    said = bill_sentence(found.bill)
    lines += [plain(f"  {line}") for line in wrapped(said, width - 2)]
    unit = (
        "at list prices" if bill.unit == "dollars" else f"in uncached input tokens ({bill.prices})"
    )
    note = f"The last two lines replay the same requests, {unit}; their output is the one reported."
    return [*lines, *_faint(note, width)]


_BILL_COLUMNS = (
    Column(""), Column("requests", rank=2), Column("input", rank=1), "cache read",
    Column("write 5m"), Column("write 1h", rank=3), "output", Column("cost", right=True),
)  # fmt: skip


def _bill_row(name: str, line: BillLine, bill: Bill) -> tuple[str, ...]:
    spend = line.spend
    counts = (
        spend.requests, spend.uncached, spend.cache_read, spend.cache_write_5m,
        spend.cache_write_1h, spend.output,
    )  # fmt: skip
    return (name, *(f"{each:,}" for each in counts), bill_cost(bill, line.cost))


def _cache(found: Insight, width: int) -> list[Line]:
    cache = found.cache
    if not cache.is_reported:
        return []
    rows = [
        (f"request {each.request}", f"line {each.line}", f"{each.lost:,}", each.why)
        for each in cache.breaks[:6]
    ]
    columns = ("", "", "", Column(right=False, least=20, keep="all"))
    return [
        plain(f"  {cache.hit_percent:.0f}% of the input was read from the cache"),
        plain(f"  {count(len(cache.breaks), 'break')}; {cache.lost:,} tokens written again"),
        *terminal_table(columns, _all_faint(rows), width, indent="    "),
    ]


def _damage(found: Insight, top: int, width: int) -> list[Line]:
    lines = [
        plain(f"    line {each.line}: {_clean(each.what, width - 20)}", "warning")
        for each in found.damage[:top]
    ]
    left = found.damaged - len(lines)
    return [*lines, plain(f"    and {left:,} more", "faint")] if left > 0 and lines else lines


def _advice(found: Insight, width: int) -> list[Line]:
    lines: list[Line] = []
    for number, advice in enumerate(found.advice, 1):
        first, *rest = wrapped(_clean(advice.text, 600), width - 5)
        lines.append([(f"  {number}. ", "name"), (first, "")])
        lines += [plain(f"     {line}") for line in rest]
        if advice.command:
            lines.append([("     $ ", "faint"), (printable(advice.command), "name")])
    return lines


def _clean(text: str, width: int, *, keep: Literal["start", "end"] = "start") -> str:
    """Return a text that is safe to show: no likely key, no control character, one line."""
    return shortened(printable(mask_secrets(text)), width, keep=keep)


def _what(name: str, width: int) -> str:
    """Return a path without its beginning, or a command without its end, if it is too long."""
    is_path = name.startswith("/")
    return _clean(name, width - _BEFORE_NAME, keep="end" if is_path else "start")


def _path(name: str, width: int) -> str:
    return _clean(name, width, keep="end")


def _all_faint(rows: Iterable[Sequence[str]]) -> list[list[Entry]]:
    return [[(cell, "faint") for cell in row] for row in rows]


def _share(tokens: int, whole: int) -> str:
    return f"{100 * tokens / whole:.0f}%" if whole else "0%"


def _sum(rows: list[UsageRow]) -> int:
    return sum(row.tokens for row in rows)
