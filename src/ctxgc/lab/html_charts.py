"""The charts of the HTML report."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ctxgc.drawing import (
    Axis,
    Bar,
    Dot,
    DrawnAtWidth,
    Series,
    Strip,
    bars,
    lines,
    scatter,
    short,
    strips,
    tone_at,
)
from ctxgc.lab.policies import Kind
from ctxgc.lab.results import Figure
from ctxgc.lab.summary import LENGTHS, PolicyRow, Report, Span, is_usable

_MAX_BILL = 1.4
_BILL = Axis("bill, as a share of never pruning")

_TONES: dict[Kind, str] = {
    "ours": "accent", "peer": "teal", "restated": "amber", "oracle": "violet", "base": "grey",
}  # fmt: skip
_NAMES: dict[Kind, str] = {
    "ours": "ctxgc", "peer": "peers", "restated": "restated rules", "oracle": "oracles",
    "base": "never pruning",
}  # fmt: skip


def percent(share: float) -> str:
    """Return a share as a percentage without a trailing zero."""
    return f"{100 * share:.1f}".removesuffix(".0") + "%"


def played(report: Report) -> list[PolicyRow]:
    """Return the rows of policies that played at least one run."""
    return [row for row in report.rows if row.runs]


def beyond(report: Report, measure: str) -> list[tuple[str, float, float]]:
    """Return the policies too expensive for the chart: name, bill and the measure."""
    return [
        (row.policy, row.bill.value, getattr(row, measure).value)
        for row in played(report)
        if row.bill.value > _MAX_BILL
    ]


def front(report: Report, measure: str) -> DrawnAtWidth:
    """Return the chart of bills against a measure: `clean`, `line_step`, `strict` or `word`."""
    rows = [row for row in played(report) if row.bill.value <= _MAX_BILL]
    axis = Axis(f"{measure.replace('_', '-')}, higher is better", percent)
    kinds = [kind for kind in _TONES if any(row.kind == kind for row in rows)]
    return partial(
        scatter,
        [_dot(report, row, getattr(row, measure)) for row in rows],
        title=f"Bill against {measure} of {len(rows)} policies",
        x=_BILL,
        y=axis,
        groups=[(_NAMES[kind], _TONES[kind]) for kind in kinds],
        with_front=True,
        height=460,
    )


def spread(report: Report) -> DrawnAtWidth:
    """Return the bills of all single runs, policy by policy."""
    found: dict[str, list[tuple[float, str]]] = {}
    for result in report.results:
        if not result.error:
            said = f"{result.policy} on {result.run}: {result.ratio:.3f}, {short(result.tokens)} tokens"
            found.setdefault(result.policy, []).append((result.ratio, said))
    rows = [
        Strip(row.policy, found.get(row.policy, []), _TONES[row.kind]) for row in played(report)
    ]
    return partial(strips, rows, title="Bill of every run by policy", axis=_BILL, mark=1.0)


def non_resident(report: Report) -> DrawnAtWidth:
    """Return the share of needs that were not in the view, policy by policy."""
    rows = sorted(played(report), key=lambda row: row.non_resident.value)
    shown = [_missing(row) for row in rows]
    return partial(bars, shown, title="Needs not resident", axis=Axis("needs", percent))


def times(report: Report) -> DrawnAtWidth:
    """Return how the time of our decisions grows with the length of the history."""
    timed = [row for row in played(report) if row.times and row.kind == "ours"]
    series = [
        Series(f"{row.policy} {name}", [(_middle(s), getattr(s, name)) for s in row.times], tone)
        for name, start in (("p50", 0), ("p99", len(timed)))
        for tone, row in zip(map(tone_at, range(start, start + len(timed))), timed, strict=True)
    ]
    return partial(
        lines,
        series,
        title="Decision time by length of the history",
        x=Axis("messages in the history"),
        y=Axis("ms per decision"),
        dots=True,
        height=320 + 18 * (len(series) // 6),
    )


def _dot(report: Report, row: PolicyRow, kept: Figure) -> Dot:
    hint = (
        f"{row.policy} ({row.kind} {row.version}): bill {row.bill.value:.3f} "
        f"[{row.bill.low:.3f}, {row.bill.high:.3f}], {percent(kept.value)} "
        f"[{percent(kept.low)}, {percent(kept.high)}], worst run {row.worst:.2f}"
    )
    return Dot(
        row.policy, row.bill.value, kept.value, _TONES[row.kind], hint,
        (row.bill.low, row.bill.high), (kept.low, kept.high), not is_usable(report, row),
    )  # fmt: skip


def _missing(row: PolicyRow) -> Bar:
    figure = row.non_resident
    hint = (
        f"{row.policy}: {percent(figure.value)} not resident; named {percent(row.named.value)}, "
        f"recallable {percent(row.recallable.value)}, lost {percent(row.lost.value)}"
    )
    return Bar(row.policy, figure.value, _TONES[row.kind], hint, (figure.low, figure.high))


def _middle(span: Span) -> float:
    """Return the middle of a span of lengths, for the axis."""
    bounds: Sequence[int] = (0, *LENGTHS)
    if span.below is None:
        return LENGTHS[-1] * 1.25
    return (bounds[bounds.index(span.below) - 1] + span.below) / 2
