"""What `ctxgc analyze` shows in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxgc.cli.output import count, printable, size_text
from ctxgc.drawing import Line, bar, chart, plain, shortened, terminal_bars
from ctxgc.insight import Insight, UsageRow
from ctxgc.session import mask_secrets

_WIDTH = 96
_BAR = 26
_NAME = 38
_CHART = 76
_TEXT = 78
_ZONE_MARKS = {70: "warning"}


def report_lines(found: Insight, *, top: int) -> Iterator[Line]:
    """Yield the report line by line."""
    yield from _about(found)
    yield from _fill(found)
    yield from _section("Tokens by source", _rows(found.sources, top, _sum(found.sources)))
    yield from _section("Tokens by tool", _tool_rows(found.tools, top))
    yield from _section("Tokens by file", _rows(found.files, top, found.tokens, path=True))
    yield from _section("Largest turns", _turn_rows(found, top))
    yield from _section("Garbage", _garbage(found, top))
    yield from _section("Bill", _bill(found))
    yield from _section("Prompt cache", _cache(found))
    yield from _section("Damaged lines", _damage(found, top))
    yield from _section("What to do next", _advice(found))
    for note in found.notes:
        yield plain(f"  {note}", "faint")


def _section(title: str, lines: Sequence[Line]) -> Iterator[Line]:
    if not lines:
        return
    yield plain("")
    yield [("── ", "faint"), (title, "title"), (" " + "─" * (_WIDTH - len(title) - 4), "faint")]
    yield from lines


def _about(found: Insight) -> Iterator[Line]:
    about, window = found.about, found.window
    names = {"claude_code": "Claude Code", "codex": "Codex", "plain": "messages"}
    who = [names[about.kind], about.version or about.format, about.model, size_text(about.bytes)]
    yield [("  ", ""), (_clean(about.session_id or about.path, _WIDTH), "title")]
    yield plain("  " + " · ".join(_clean(word, 60) for word in who if word), "faint")
    if about.project:
        yield plain(f"  {_clean(about.project, _WIDTH)}", "faint")
    yield plain("")
    share = f" {window.percent:.0f}% of {window.limit:,}"
    yield [
        ("  window now  ", ""),
        *bar(window.percent, 40),
        (share, window.zone),
        (f" {window.zone}", ""),
    ]
    yield plain(f"  {window.tokens:,} tokens, {count(window.messages, 'message')}", "faint")
    if window.beside:
        outside = "system prompt, tools, files re-attached after compaction"
        yield plain(f"  {window.beside:,} tokens not in the transcript ({outside})", "faint")
    whole = (
        f"  {count(len(found.turns), 'turn')}, {count(found.requests, 'request')},"
        f" {count(found.messages, 'entry', 'entries')},"
        f" {count(found.compactions, 'compaction')}, {found.tokens:,} tokens in the whole session"
    )
    yield plain(whole, "faint")


def _fill(found: Insight) -> Iterator[Line]:
    if len(found.fill) < 2:
        return
    percents = [min(100.0, point.percent) for point in found.fill]
    drawn = chart(percents, _CHART, _ZONE_MARKS)
    width = min(_CHART, len(percents))
    last = f"{found.requests:,} requests"
    below = f"      1{last.rjust(max(width - 1, len(last) + 1))}"
    zones = [f"{requests:,} {zone}" for zone, requests in found.zones.items() if requests]
    yield from _section("The window at each request", [*drawn, plain(below, "faint")])
    yield plain(f"      requests by zone: {', '.join(zones)}", "faint")


def _rows(rows: list[UsageRow], top: int, whole: int, *, path: bool = False) -> list[Line]:
    shown = [
        (
            _path(row.name) if path else _clean(row.name, _NAME),
            float(row.tokens),
            f"{row.tokens:>9,}  {_share(row.tokens, whole)}  now {row.window_tokens:,}"
            + (f"  x{row.count}" if path else ""),
        )
        for row in rows[:top]
        if row.tokens
    ]
    return terminal_bars(shown, _BAR)


def _tool_rows(rows: list[UsageRow], top: int) -> list[Line]:
    shown = [
        (
            _clean(row.name, _NAME),
            float(row.tokens),
            f"{row.tokens:>9,}  {count(row.count, 'call')}"
            + (f", {row.failed} failed" if row.failed else "")
            + f", largest {row.largest:,}",
        )
        for row in rows[:top]
    ]
    return terminal_bars(shown, _BAR)


def _turn_rows(found: Insight, top: int) -> list[Line]:
    ranked = sorted(found.turns, key=lambda turn: (-turn.tokens, turn.number))[:top]
    shown = [
        (
            f"{turn.number:>3} {_clean(turn.title, _NAME - 4)}",
            float(turn.tokens),
            f"{turn.tokens:>9,}  {count(turn.calls, 'call')}, line {turn.line}",
        )
        for turn in ranked
        if turn.tokens
    ]
    return terminal_bars(shown, _BAR)


def _garbage(found: Insight, top: int) -> list[Line]:
    garbage = found.garbage
    if not garbage.tokens:
        return []
    rows = [
        (each.reason, float(each.tokens), f"{each.tokens:>9,}  {count(each.count, 'segment')}")
        for each in garbage.reasons
        if each.count
    ]
    of = "the last window" if garbage.windows == 1 else f"{garbage.windows} windows"
    head = f"  {garbage.tokens:,} of {garbage.of_tokens:,} tokens ({garbage.percent:.0f}%) in {of}"
    dead = [
        plain(
            f"    line {each.line:<6} {each.tokens:>7,}  {each.how or each.reason:<11}"
            f"  {_clean(each.name, 56)}",
            "faint",
        )
        for each in garbage.largest[: max(1, top // 2)]
    ]
    return [plain(head), *terminal_bars(rows, _BAR), *dead]


def _bill(found: Insight) -> list[Line]:
    bill, replayed = found.bill, found.bill.replayed
    lines: list[Line] = []
    if bill.paid is not None:
        side = (
            f", {count(bill.side_requests, 'request')} of subagents" if bill.side_requests else ""
        )
        said = f"with {bill.output:,} tokens of output{side}"
        lines.append(plain(f"  paid as reported    {bill.paid:>14,.0f}  {said}"))
    if replayed.requests:
        sums = [
            ("sending everything", replayed.without, replayed.sent_without),
            ("with collections", replayed.with_, replayed.sent_with),
        ]
        lines += [
            plain(
                f"  {name:<18}  {cost:>14,.0f}  {sent:,} tokens sent in {replayed.requests:,} requests"
            )
            for name, cost, sent in sums
        ]
        verdict = "saved" if bill.saved_percent >= 0 else "lost"
        said = f"  {abs(bill.saved_percent):.1f}% {verdict} by {count(replayed.collections, 'collection')}"
        lines.append(plain(said, "safe" if bill.saved_percent > 0 else ""))
    unit = f"  Unit: uncached input tokens ({bill.prices}). What is sent is simulated, input only."
    return [*lines, plain(unit, "faint")] if lines else []


def _cache(found: Insight) -> list[Line]:
    cache = found.cache
    if not cache.is_reported:
        return []
    lines = [
        plain(f"  {cache.hit_percent:.0f}% of the input was read from the cache"),
        plain(f"  {count(len(cache.breaks), 'break')}; {cache.lost:,} tokens written again"),
    ]
    lines += [
        plain(
            f"    request {each.request:<5} line {each.line:<6} {each.lost:>9,}  {each.why}",
            "faint",
        )
        for each in cache.breaks[:6]
    ]
    return lines


def _damage(found: Insight, top: int) -> list[Line]:
    lines = [plain(f"    line {each.line}: {each.what}", "warning") for each in found.damage[:top]]
    left = found.damaged - len(lines)
    return [*lines, plain(f"    and {left} more", "faint")] if left > 0 and lines else lines


def _advice(found: Insight) -> list[Line]:
    lines: list[Line] = []
    for number, advice in enumerate(found.advice, 1):
        first, *rest = _wrapped(_clean(advice.text, 600))
        lines.append([(f"  {number}. ", "name"), (first, "")])
        lines += [plain(f"     {line}") for line in rest]
        if advice.command:
            lines.append([("     $ ", "faint"), (printable(advice.command), "name")])
    return lines


def _wrapped(text: str) -> list[str]:
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) >= _TEXT:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _clean(text: str, width: int) -> str:
    """Return a text that is safe to show: no likely key, no control character, one line."""
    return shortened(printable(mask_secrets(text)), width)


def _path(name: str) -> str:
    shown = printable(name)
    return shown if len(shown) <= _NAME else f"…{shown[-_NAME + 1 :]}"


def _share(tokens: int, whole: int) -> str:
    return f"{100 * tokens / whole:>3.0f}%" if whole else "  0%"


def _sum(rows: list[UsageRow]) -> int:
    return sum(row.tokens for row in rows)
