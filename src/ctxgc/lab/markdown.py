"""The report as Markdown: the tables that the docs carry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ctxgc.lab.evidence import EVIDENCE_KINDS
from ctxgc.lab.results import Figure
from ctxgc.lab.summary import DEARER, OTHERS, PolicyRow, Report
from ctxgc.lab.survival import SurvivalRow, SurvivalShares

_ORDER = ("ours", "peer", "restated", "oracle", "base")
_COLUMNS = (
    "kind", "bill [95% CI]", "+15k", "bits excess [95% CI]", "of bare", "worst run", "strict",
    "clean", "line-step", "word", "not resident",
    "newest shown", "invalid histories", "over the limit", "failed",
)  # fmt: skip
_GAP_COLUMNS = ("compared with", "bill [95% CI]", "not resident [95% CI]")
_SAVES = 2 - DEARER


def markdown_report(report: Report) -> str:
    """Return what was played, the table, its halves, the gaps, which others are ahead, and what failed."""
    parts = [_headline(report), quality(report)]
    parts += [halves(report)] if report.halves else []
    parts += [gaps(report)] if report.gaps else []
    parts += [survival(report)] if report.survival else []
    notes = [*_ahead(report), *_troubles(report)]
    parts += ["\n".join(f"- {said}" for said in notes)] if notes else []
    return "\n\n".join(parts) + "\n"


def _headline(report: Report) -> str:
    """Return one sentence about what was played."""
    least = f", runs of at least {report.least_tokens:,} tokens" if report.least_tokens else ""
    return (
        f"`{report.regime}`: {report.runs:,} runs in {report.groups:,} groups, "
        f"{report.requests:,} requests, {report.needs:,} needs in {report.steps:,} steps "
        f"({report.source}{least}; sheet `{report.sheet.name}`)."
    )


def quality(report: Report) -> str:
    """Return one row for each policy: ours first, then the others, the oracles, the base line."""
    rows = ((row.policy, *_cells(row)) for row in _by_kind(report))
    return grid((report.regime, *_COLUMNS), rows)


HALF_COLUMNS = (
    "policy", "half", "bill [95% CI]", "+15k", "bits excess [95% CI]", "of bare", "worst run", "strict",
    "clean", "line-step", "word", "not resident",
)  # fmt: skip


def halves(report: Report) -> str:
    """Return what each half says, and for each policy a row of the half that fits and one of the other."""
    said = "; ".join(
        f"{each.half}: {each.runs:,} runs in {each.groups:,} groups, {each.requests:,} requests"
        for each in report.halves
    )
    table = grid(HALF_COLUMNS, half_cells(report))
    return f"Half of the runs is there to fit constants, the other to judge ({said}).\n\n{table}"


def half_cells(report: Report) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each policy in each half, side by side."""
    rows = {(each.half, row.policy): row for each in report.halves for row in each.rows}
    for row in _by_kind(report):
        for each in report.halves:
            yield row.policy, each.half, *_figures(rows[each.half, row.policy])


def gaps(report: Report) -> str:
    """Return our policies compared with the oracles and the best of the others, as ratios.

    Policies with the same figures share a row: in a window all presets may have them.
    """
    names: dict[tuple[str, ...], list[str]] = {}
    for gap in report.gaps:
        cells = (f"{gap.other} ({gap.role})", interval(gap.bill), interval(gap.non_resident))
        names.setdefault(cells, []).append(gap.policy)
    return grid(("ratio", *_GAP_COLUMNS), ((", ".join(n), *cells) for cells, n in names.items()))


_MOMENTS = {"end": "end", "collections": "collections", "host": "compaction"}


SURVIVAL_COLUMNS = (
    "policy", "after", "view size", *EVIDENCE_KINDS, "in view [95% CI]", "lost [95% CI]",
)  # fmt: skip


def survival(report: Report) -> str:
    """Return for each policy and kind what share is in the view, behind a handle and lost, in percent."""
    return grid(SURVIVAL_COLUMNS, map(survival_cells, report.survival))


def survival_cells(row: SurvivalRow) -> tuple[str, ...]:
    """Return a policy, a moment, the share of the run that was sent, each kind, and all of them."""
    shares = (row.kinds[kind] for kind in EVIDENCE_KINDS)
    everything = row.kinds["all"]
    return (
        row.policy,
        f"{_MOMENTS[row.moment]} ({row.runs})",
        percent(row.tokens),
        *map(_split, shares),
        *map(_percents, (everything.view, everything.lost)),
    )


def _split(shares: SurvivalShares) -> str:
    places = (shares.view, shares.handle, shares.lost)
    return "/".join(map(_rounded, places)) if shares.view.of else "-"


def _rounded(figure: Figure) -> str:
    """Return a share in whole percent; what is not nothing and not all does not look like it."""
    share = 100 * figure.value
    if 0 < share < 0.5:
        return "<1"
    return ">99" if 99.5 < share < 100 else f"{share:.0f}"


def _percents(figure: Figure) -> str:
    return f"{percent(figure)} [{100 * figure.low:.1f}, {100 * figure.high:.1f}]"


def _ahead(report: Report) -> Iterator[str]:
    """Yield which others are cheaper than our first policy, and which save money and miss less."""
    ours = next((row for row in report.rows if row.kind == "ours" and row.runs), None)
    others = [row for row in _by_kind(report) if row.kind in OTHERS and row.runs]
    if ours is None or not others:
        return
    cheaper = [_cheap(row) for row in others if row.bill.value < ours.bill.value]
    saving = [row for row in others if row.bill.value < _SAVES]
    fuller = [_full(row) for row in saving if row.non_resident.value < ours.non_resident.value]
    yield f"Cheaper than {ours.policy} ({ours.bill.value:.3f}): {', '.join(cheaper) or 'none'}"
    yield (
        "Cheaper than never pruning, with fewer needs not resident than "
        f"{ours.policy} ({percent(ours.non_resident)}): {', '.join(fuller) or 'none'}"
    )


def _cheap(row: PolicyRow) -> str:
    return f"{row.policy} {row.bill.value:.3f} (strict {percent(row.strict)})"


def _full(row: PolicyRow) -> str:
    wrong = f"{row.over:,} requests over the limit, {row.refused:,} invalid"
    return f"{row.policy} {percent(row.non_resident)} (bill {row.bill.value:.3f}, {wrong})"


def _troubles(report: Report) -> Iterator[str]:
    """Yield for each policy the rules that its requests broke, and why runs failed."""
    for row in _by_kind(report):
        if row.refused:
            rules = ", ".join(f"{rule} x {count:,}" for rule, count in row.rules.items())
            yield f"{row.policy}: {row.refused:,} invalid histories ({rules})"
        if row.failed:
            yield f"{row.policy}: {row.failed:,} runs failed ({'; '.join(row.errors)})"


def _by_kind(report: Report) -> list[PolicyRow]:
    """Return the rows sorted by kind, ours first; within a kind in the order of the report."""
    return sorted(report.rows, key=lambda row: _ORDER.index(row.kind))


def grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; its first two columns are text, the others figures."""
    rule = ["---"] * 2 + ["--:"] * (len(head) - 2)
    lines = [_line(head), f"|{'|'.join(rule)}|", *map(_line, rows)]
    return "\n".join(lines)


def percent(figure: Figure) -> str:
    """Return a share in percent."""
    return f"{100 * figure.value:.1f}"


def interval(figure: Figure | None) -> str:
    """Return a ratio with its confidence interval; a dash if there is none."""
    return f"{figure.value:.3f} [{figure.low:.2f}, {figure.high:.2f}]" if figure else "-"


def bits(row: PolicyRow) -> tuple[str, str]:
    """Return the excess of copied bits with its interval, and as share of a bare view's, in percent."""
    if row.bits is None:
        return "-", "-"
    excess = row.bits.excess
    low, high = 100 * excess.low, 100 * excess.high
    return f"{100 * excess.value:.2f} [{low:.1f}, {high:.1f}]", percent(row.bits.share)


def kind(row: PolicyRow) -> str:
    """Return what a policy is; a peer is named by its package and version."""
    return f"peer, {row.version}" if row.kind == "peer" else row.kind


def _cells(row: PolicyRow) -> tuple[str, ...]:
    shown, counts = percent(row.newest) if row.runs else "-", (row.refused, row.over)
    wrong = (f"{count:,}" if row.runs else "-" for count in counts)
    return (kind(row), *_figures(row), shown, *wrong, f"{row.failed:,}")


def _figures(row: PolicyRow) -> tuple[str, ...]:
    """Return what a policy costs and keeps; dashes if it could play no run."""
    if not row.runs:
        return ("-",) * (len(HALF_COLUMNS) - 2)
    shares = (row.strict, row.clean, row.line_step, row.word, row.non_resident)
    return (
        interval(row.bill),
        f"{row.bill_15k.value:.3f}",
        *bits(row),
        f"{row.worst:.2f}",
        *map(percent, shares),
    )


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;').replace(chr(10), ' ') for cell in cells)} |"
