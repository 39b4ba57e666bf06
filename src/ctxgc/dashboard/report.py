"""The page of a recorded session as one self-contained file: its figures, and the time machine of its window.

`ctxgc analyze --html` writes it. The time machine is the one of the dashboard, with its data in the file.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from ctxgc.dashboard.page_files import joined_modules, own_sheet
from ctxgc.drawing import (
    Axis,
    Bar,
    Cell,
    Html,
    Program,
    Section,
    Series,
    Slice,
    bars,
    donut,
    figure,
    joined,
    lines,
    listing,
    page,
    paragraph,
    placeholder,
    preformatted,
    side_by_side,
    table,
    tone_at,
)
from ctxgc.insight import Insight, UsageRow, bill_cost, bill_sentence
from ctxgc.session import mask_secrets

_Cells: TypeAlias = list[str | Cell]

_TOP = 12
_LONGEST = 160
_NAMES = {"claude_code": "Claude Code", "codex": "Codex", "plain": "messages"}
_TONES = {
    "superseded": "orange", "copy": "amber", "unreachable": "red", "verbose": "violet",
    "injected again": "blue", "never called": "grey",
}  # fmt: skip


def report_page(found: Insight, timeline: bytes | None = None) -> str:
    """Return the page of an insight, with a time machine of its timeline (as JSON) if that is given."""
    about, window = found.about, found.window
    name = about.title or about.session_id or about.path
    who = [_NAMES[about.kind], about.version, about.model, about.project]
    return page(
        _safe(name),
        _sections(found, timeline),
        subtitle=" · ".join(_safe(word) for word in who if word),
        facts=[
            (f"{window.percent:.0f}%", f"of {window.limit:,} tokens: {window.zone}"),
            (f"{found.tokens:,}", "tokens in the whole session"),
            (f"{found.garbage.percent:.0f}%", "garbage"),
            (f"{found.requests:,}", "requests"),
            *(
                [(f"{found.cache.hit_percent:.0f}%", "cache hits")]
                if found.cache.is_reported
                else ()
            ),
        ],
        footer="Made by ctxgc analyze. " + " ".join(found.notes),
        program=None if timeline is None else _time_machine(timeline),
    )


def timeline_page(title: str, subtitle: str, timeline: bytes) -> str:
    """Return a page with nothing but the time machine of a timeline (as JSON)."""
    sections = [Section("Time machine", _machine_place())]
    return page(_safe(title), sections, subtitle=_safe(subtitle), program=_time_machine(timeline))


def _time_machine(timeline: bytes) -> Program:
    return Program(joined_modules("report.js"), timeline, "time-machine-data", own_sheet())


def _machine_place() -> Html:
    return placeholder("time-machine", "The time machine runs where scripts may run.")


def _sections(found: Insight, timeline: bytes | None) -> list[Section]:
    parts: list[tuple[str, Callable[[Insight], Html | None]]] = [
        ("What to do next", _advice),
        ("Time machine", lambda _: None if timeline is None else _machine_place()),
        ("The window over time", _fill),
        ("Tokens by source", _sources),
        ("Tokens by tool", _tools),
        ("Tokens by file", _files),
        ("Turns", _turns),
        ("Garbage", _garbage),
        ("Bill", _bill),
        ("Prompt cache", _cache),
        ("Damaged lines", _damage),
    ]
    drawn = [(title, draw(found)) for title, draw in parts]
    return [Section(title, body) for title, body in drawn if body is not None]


def _advice(found: Insight) -> Html | None:
    if not found.advice:
        return None
    return joined(
        part
        for advice in found.advice
        for part in (
            paragraph(_safe(advice.text)),
            *([preformatted(f"$ {advice.command}")] if advice.command else ()),
        )
    )


def _fill(found: Insight) -> Html | None:
    if len(found.fill) < 2:
        return None
    points = [(float(point.request), point.percent) for point in found.fill]
    drawn = partial(
        lines,
        [Series("window", points, filled=True)],
        title="How full the window was at each request",
        x=Axis("request"),
        y=Axis("% of the window"),
        marks={"warning": 70.0, "danger": 85.0, "critical": 95.0},
    )
    rows = [[zone, f"{n:,}"] for zone, n in found.zones.items()]
    return joined(
        [
            figure(
                drawn, f"{found.compactions} compactions; window {found.window.number} is open."
            ),
            table(["zone", "requests"], rows),
        ]
    )


def _sources(found: Insight) -> Html | None:
    if not found.sources:
        return None
    whole = [Slice(row.name, row.tokens, tone_at(place)) for place, row in enumerate(found.sources)]
    now = [
        Slice(row.name, row.window_tokens, tone_at(place))
        for place, row in enumerate(found.sources)
    ]
    now.append(Slice("not in the transcript", found.window.beside, "grey"))
    return side_by_side(
        figure(
            partial(donut, whole, title="The whole session, by source"), heading="The whole session"
        ),
        figure(partial(donut, now, title="The window now, by source"), heading="The window now"),
    )


def _tools(found: Insight) -> Html | None:
    rows: list[_Cells] = [
        [_name(row), f"{row.tokens:,}", f"{row.window_tokens:,}", f"{row.count:,}",
         f"{row.failed:,}", f"{row.largest:,}"]
        for row in found.tools[:_TOP]
    ]  # fmt: skip
    head = ["tool", "tokens", "in the window now", "calls", "failed", "largest"]
    return _charted(found.tools, "Tokens by tool", table(head, rows))


def _files(found: Insight) -> Html | None:
    rows: list[_Cells] = [
        [_name(row), f"{row.tokens:,}", f"{row.window_tokens:,}", f"{row.count:,}"]
        for row in found.files[:_TOP]
    ]
    return _charted(
        found.files, "Tokens by file", table(["file", "tokens", "in the window now", "calls"], rows)
    )


def _charted(rows: list[UsageRow], title: str, below: Html) -> Html | None:
    if not rows:
        return None
    items = [Bar(_end(row.name), row.tokens, hint=f"{row.tokens:,}") for row in rows[:_TOP]]
    return joined([figure(partial(bars, items, title=title, axis=Axis("tokens"))), below])


def _turns(found: Insight) -> Html | None:
    if not found.turns:
        return None
    points = [(float(turn.number), float(turn.tokens)) for turn in found.turns]
    largest = sorted(found.turns, key=lambda turn: (-turn.tokens, turn.number))[:_TOP]
    rows: list[_Cells] = [
        [str(turn.number), Cell(_safe(turn.title), style="flow left"), f"{turn.tokens:,}",
         f"{turn.calls:,}", str(turn.line)]
        for turn in largest
    ]  # fmt: skip
    drawn = partial(
        lines, [Series("turns", points)], title="Tokens of each turn", x=Axis("turn"), y=Axis("tokens"),
        dots=len(points) <= 60, height=220,
    )  # fmt: skip
    below = table(["turn", "what was asked", "tokens", "calls", "line"], rows)
    return joined([*([figure(drawn)] if len(points) > 1 else []), below])


def _garbage(found: Insight) -> Html | None:
    garbage = found.garbage
    if not garbage.tokens:
        return None
    slices = [Slice(each.reason, each.tokens, _TONES[each.reason]) for each in garbage.reasons]
    slices.append(Slice("live", max(0, garbage.of_tokens - garbage.tokens), "green"))
    rows: list[_Cells] = [
        [
            Cell(_safe(each.name)[:_LONGEST], style="flow left"),
            Cell(each.how or each.reason, style="left"),
            f"{each.tokens:,}",
            str(each.line),
        ]
        for each in garbage.largest
    ]
    said = f"{garbage.tokens:,} of {garbage.of_tokens:,} tokens in the window now are garbage."
    ring = partial(donut, slices, title="Garbage by reason", centre=f"{garbage.percent:.0f}%")
    head = ["what", "why", "tokens", "line"]
    largest = table(head, rows, caption="The largest pieces.")
    return joined([paragraph(said), figure(ring), largest])


def _bill(found: Insight) -> Html | None:
    bill = found.bill
    if not bill.without.spend.requests:
        return None
    named = [
        ("paid, as reported", bill.paid, "grey"),
        ("sending everything", bill.without, "grey"),
        ("with collections", bill.with_, "green"),
        ("besides: subagents", bill.subagents, "grey"),
    ]
    known = [(name, line, tone) for name, line, tone in named if line is not None]
    rows: list[_Cells] = [
        [name, f"{s.requests:,}", f"{s.uncached:,}", f"{s.cache_read:,}", f"{s.cache_write_5m:,}",
         f"{s.cache_write_1h:,}", f"{s.output:,}", bill_cost(bill, line.cost)]
        for name, line, _ in known for s in (line.spend,)
    ]  # fmt: skip
    head = ["", "requests", "input", "cache read", "write 5m", "write 1h", "output", "cost"]
    unit = "list prices" if bill.unit == "dollars" else f"uncached input tokens ({bill.prices})"
    said = f"{bill_sentence(found.bill)}. Replayed from the same requests; costs are in {unit}."
    items = [
        Bar(name, line.cost, tone, hint=bill_cost(bill, line.cost)) for name, line, tone in known
    ]
    drawn = partial(
        bars, items, title="Bill with and without collections",
        axis=Axis("dollars" if bill.unit == "dollars" else "uncached input tokens"),
    )  # fmt: skip
    return joined([paragraph(said), figure(drawn), table(head, rows)])


def _cache(found: Insight) -> Html | None:
    cache = found.cache
    if not cache.is_reported:
        return None
    said = (
        f"{cache.read:,} tokens were read from the cache, {cache.written:,} written to it;"
        f" {cache.lost:,} were written again because the cache broke {len(cache.breaks)} times."
    )
    rows = [[str(b.request), b.why, f"{b.lost:,}", str(b.line)] for b in cache.breaks[:_TOP]]
    broken = table(["request", "why", "tokens written again", "line"], rows)
    return joined([paragraph(said), *([broken] if rows else [])])


def _damage(found: Insight) -> Html | None:
    if not found.damage:
        return None
    return listing(_safe(f"line {each.line}: {each.what}") for each in found.damage[:_TOP])


def _safe(text: str) -> str:
    return mask_secrets(text)


def _name(row: UsageRow) -> Cell:
    return Cell(_safe(row.name), style="flow left")


def _end(name: str) -> str:
    """Return the end of a long path, where paths differ."""
    shown = _safe(name)
    return shown if len(shown) <= 40 else f"…{shown[-39:]}"
