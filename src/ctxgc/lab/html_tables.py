"""The tables of the HTML report."""

from __future__ import annotations

import json

from ctxgc.drawing import Cell, Html, count, folded, joined, table
from ctxgc.lab.html_charts import played
from ctxgc.lab.markdown import HALF_COLUMNS, half_cells
from ctxgc.lab.results import Figure, RunResult
from ctxgc.lab.summary import PolicyRow, Report

Line = list[str | Cell]


def quality(report: Report) -> Html:
    """Return what each policy costs and keeps, with confidence intervals."""
    head = [
        "policy",
        "bill",
        "+15k",
        "bits",
        "worst",
        "strict",
        "clean",
        "line-step",
        "word",
        "not res.",
        "wrong",
    ]
    rows = [_quality(row) for row in report.rows]
    return table(
        head,
        rows,
        caption="Shares in percent; below each its 95% confidence interval, if there are several groups.",
        strong=_ours(report),
    )


def halves(report: Report) -> Html:
    """Return for each policy what the half that fits says, and the half that judges."""
    rows: list[Line] = [
        [policy, Cell(half, style="left"), *figures]
        for policy, half, *figures in half_cells(report)
    ]
    return table(list(HALF_COLUMNS), rows)


def needs(report: Report) -> Html:
    """Return what became of the needs that were not resident."""
    head = ["policy", "needs", "not resident", "named", "recallable", "lost"]
    rows: list[Line] = [
        [row.policy, f"{row.non_resident.of:,.0f}", *(_share(f) for f in _missing(row))]
        for row in played(report)
    ]
    return table(head, rows, strong=_ours(report, only_played=True))


def worst(report: Report) -> Html:
    """Return the most expensive run of each policy, and how many runs became more expensive."""
    head = ["policy", "worst bill", "in run", "runs > 0.5% more expensive", "runs"]
    rows: list[Line] = [
        [row.policy, _ratio(row.worst), Cell(row.worst_run, style="left"),
         f"{100 * row.dearer:.0f}%", f"{row.runs:,}"]
        for row in played(report)
    ]  # fmt: skip
    return table(head, rows, strong=_ours(report, only_played=True))


def gaps(report: Report) -> Html:
    """Return our policies compared with the oracles and the best of the others."""
    saved = {row.policy: 1 - row.bill.value for row in played(report)}
    head = ["policy", "compared with", "bill, ratio", "not resident, ratio", "share of its saving"]
    rows: list[Line] = [
        [gap.policy, Cell(gap.other, f"({gap.role})", "left"), _of(gap.bill), _of(gap.non_resident),
         _taken(saved[gap.policy], saved[gap.other])]
        for gap in report.gaps
    ]  # fmt: skip
    return table(head, rows)


def soundness(report: Report) -> Html:
    """Return what a policy must not do, and whether its own accounting is right."""
    head = ["policy", "invalid histories", "over the limit", "prefix breaks", "collections",
            "runs that disagree", "report error", "newest shown"]  # fmt: skip
    rows = [_sound(row) for row in played(report)]
    return table(head, rows, strong=_ours(report, only_played=True))


def times(report: Report) -> Html:
    """Return the decision times by the length of the history."""
    head = ["policy", "messages", "requests", "p50 ms", "p99 ms", "max ms"]
    rows: list[Line] = [
        [row.policy, "more" if span.below is None else f"< {span.below:,}", f"{span.requests:,}",
         f"{span.p50:.2f}", f"{span.p99:.2f}", f"{span.most:.2f}"]
        for row in played(report)
        for span in row.times
    ]  # fmt: skip
    return folded("All decision times", table(head, rows))


def policies(report: Report) -> Html:
    """Return what was compared: kind, version and settings."""
    head = ["policy", "kind", "version", "settings"]
    rows: list[Line] = [
        [row.policy, Cell(row.kind, style="left"), Cell(row.version, style="left"),
         Cell(_settings(row), style="flow")]
        for row in report.rows
    ]  # fmt: skip
    return table(head, rows)


def runs(report: Report) -> Html:
    """Return every single result, folded away policy by policy."""
    return joined(
        folded(f"{row.policy}: {count(row.runs + row.failed, 'run')}", _results(report, row))
        for row in report.rows
    )


def _results(report: Report, row: PolicyRow) -> Html:
    head = ["run", "tokens", "requests", "bill", "steps", "strict", "clean", "line-step", "error"]
    found = [_result(result) for result in report.results if result.policy == row.policy]
    return table(head, found)


def _result(result: RunResult) -> Line:
    known: Line = [result.run, f"{result.tokens:,}", f"{result.requests:,}"]
    if result.error:
        return [*known, "", "", "", "", "", Cell(result.error, style="flow")]
    shares = [
        (result.strict, result.steps),
        (result.clean, result.steps),
        (result.line_steps_kept, result.line_steps),
    ]
    kept = [f"{100 * part / whole:.1f}" if whole else "-" for part, whole in shares]
    return [*known, _ratio(result.ratio), f"{result.steps:,}", *kept, ""]


def _quality(row: PolicyRow) -> Line:
    if not row.runs:
        return [row.policy, Cell("failed", style="bad"), *[""] * 9]
    bill = Cell(f"{row.bill.value:.3f}", row.bill.interval(".2f", " to "), "stack")
    kept = (row.strict, row.clean, row.line_step, row.word, row.non_resident)
    wrong = _alarm(row.refused + row.over)
    more = [_ratio(row.bill_15k.value, 3), _bits(row)]
    return [row.policy, bill, *more, _ratio(row.worst), *map(_share, kept), wrong]


def _bits(row: PolicyRow) -> Cell:
    return Cell("-") if row.bits is None else _share(row.bits.excess, 2)


def _sound(row: PolicyRow) -> Line:
    none = "-"
    return [
        row.policy,
        Cell(f"{row.refused:,}", _rules(row), f"{_bad(row.refused)} stack"),
        Cell(f"{row.over:,}", f"+{row.over_excused:,} excused" if row.over_excused else "", _bad(row.over)),
        f"{row.breaks:,}",
        none if row.collections is None else f"{row.collections:,.0f}",
        none if row.off is None else _alarm(row.off),
        none if row.report_error is None else f"{100 * row.report_error:.1f}%",
        f"{100 * row.newest.value:.1f}%",
    ]  # fmt: skip


def _rules(row: PolicyRow) -> str:
    return ", ".join(f"{rule} x {count:,}" for rule, count in row.rules.items())


def _share(figure: Figure, digits: int = 1) -> Cell:
    said = figure.interval(".1f", " to ", scale=100)
    return Cell(f"{100 * figure.value:.{digits}f}", said, "stack")


def _missing(row: PolicyRow) -> tuple[Figure, ...]:
    return row.non_resident, row.named, row.recallable, row.lost


def _ratio(value: float, digits: int = 2) -> Cell:
    return Cell(f"{value:.{digits}f}", style="bad" if value > 1.05 else "")


def _alarm(count: int) -> Cell:
    return Cell(f"{count:,}", style=_bad(count))


def _bad(count: int) -> str:
    return "bad" if count else ""


def _of(figure: Figure | None) -> Cell:
    if figure is None:
        return Cell("-")
    return Cell(f"{figure.value:.3f}", figure.interval(".2f", " to "), "stack")


def _taken(saving: float, other: float) -> str:
    return f"{100 * saving / other:.0f}%" if other > 0 else "-"


def _settings(row: PolicyRow) -> str:
    return json.dumps(row.settings, ensure_ascii=False, sort_keys=True) if row.settings else "-"


def _ours(report: Report, *, only_played: bool = False) -> list[int]:
    rows = played(report) if only_played else report.rows
    return [place for place, row in enumerate(rows) if row.kind == "ours"]
