"""The report on many runs: one row for each policy, and gaps to the oracles and to the others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import msgspec

from ctxgc.economics import PriceSheet
from ctxgc.lab.policies import Kind, Policy
from ctxgc.lab.results import Bootstrap, Figure, RunResult, quantile
from ctxgc.lab.runs import HALVES, Half, half_of
from ctxgc.lab.survival import SurvivalRow, survival_rows

# -- Gaps between our policies, the oracles and the best of the others


OTHERS = ("peer", "restated")
MOST_WRONG = 0.01


class Gap(msgspec.Struct, frozen=True, kw_only=True):
    """One policy compared with another, on the runs that both could play.

    `bill` and `non_resident` are ratios of sums over the same draws, so that what makes a run hard for
    both cancels out. `non_resident` is None if all needs of the other are resident.
    """

    policy: str
    other: str
    role: str
    bill: Figure
    non_resident: Figure | None


def gaps(kinds: dict[str, str], results: Sequence[RunResult], *, window: bool) -> list[Gap]:
    """Return the gap of each of our policies to each oracle and, in a window, to the best of the others.

    The best is the one with the fewest needs that are not resident, among those whose requests are
    valid and fit: sending more than the window holds is not an achievement.
    """
    own = {name: _by_run(results, name) for name in kinds}
    rivals = [(name, "oracle") for name, kind in kinds.items() if kind == "oracle"]
    best = _best([name for name, kind in kinds.items() if kind in OTHERS], own) if window else None
    rivals += [(best, "best of the others")] if best else []
    ours = [name for name, kind in kinds.items() if kind == "ours"]
    return [
        gap
        for name in ours
        for other, role in rivals
        for gap in _gap((name, own[name]), (other, own[other]), role)
    ]


def _by_run(results: Sequence[RunResult], policy: str) -> dict[str, RunResult]:
    return {r.run: r for r in results if r.policy == policy and not r.error}


def _best(names: Sequence[str], own: dict[str, dict[str, RunResult]]) -> str | None:
    runs = max((len(own[name]) for name in names), default=0)
    sound = [name for name in names if own[name] and len(own[name]) == runs]
    sound = [name for name in sound if _fits(own[name].values())]
    return min(sound, key=lambda name: (sum(map(_missing, own[name].values())), name), default=None)


def _fits(results: Collection[RunResult]) -> bool:
    requests = sum(result.requests for result in results)
    wrong = sum(result.over + result.refused for result in results)
    return wrong <= MOST_WRONG * requests


def _missing(result: RunResult) -> float:
    return result.needs - result.resident


def _gap(
    one: tuple[str, dict[str, RunResult]], other: tuple[str, dict[str, RunResult]], role: str
) -> Iterator[Gap]:
    both = [run for run in one[1] if run in other[1]]
    if not both:
        return
    draws = Bootstrap([one[1][run].group for run in both])

    def ratio(value: Callable[[RunResult], float]) -> Figure:
        return draws.share(
            [value(one[1][run]) for run in both], [value(other[1][run]) for run in both]
        )

    missing = ratio(_missing)
    yield Gap(
        policy=one[0],
        other=other[0],
        role=role,
        bill=ratio(lambda result: result.bill),
        non_resident=missing if missing.of else None,
    )


DEARER = 1.005
LENGTHS = (250, 1_000, 2_000, 4_000)


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """Decision times of the requests whose history had fewer than `below` messages, in milliseconds."""

    below: int | None
    requests: int
    p50: float
    p99: float
    most: float


class CopiedBits(msgspec.Struct, frozen=True, kw_only=True):
    """What the answers cost to write down, given the views of a policy (see `lab.bits`).

    Attributes:
        excess: bits beyond those with the whole history, as a share of these; below 0 where a view
            without its clutter is the better dictionary.
        share: the same bits as a share of what a bare view (head and last exchange) costs more.
        steps: how many answers were compressed.
    """

    excess: Figure
    share: Figure
    steps: int


class PolicyRow(msgspec.Struct, frozen=True, kw_only=True):
    """One policy over all runs that it could play.

    Attributes:
        bill: the sum of its bills over that of never pruning.
        bill_15k: the same with 15,000 constant tokens before each request, as system prompt and tools
            of real agents have.
        bits: what the recorded answers cost more than with the whole history; None if not measured.
        strict: steps all of whose needs are resident; `clean`: resident or named.
        line_step: steps all of whose quoted lines are still in the view.
        word: reused rare plain words that are still there.
        wide: needs that are resident with surroundings not cut at line ends.
        non_resident: needs that are not resident; they are `named`, `recallable` or `lost`.
        newest: facts of the newest results that the view shows.
        dearer: the share of runs that became more than 0.5% more expensive.
        refused: requests whose history a provider would refuse; `rules` says why.
        over: requests over the limit although the head and the last exchange fit.
        off: runs in which the policy's count of collections differs from the prefix breaks.
        report_error: the largest difference of its own savings report from the replayed bill.
    """

    policy: str
    kind: Kind
    version: str
    settings: dict[str, Any]
    runs: int
    failed: int
    errors: list[str]

    bill: Figure
    bill_15k: Figure
    bits: CopiedBits | None = None
    strict: Figure
    clean: Figure
    line_step: Figure
    word: Figure
    wide: Figure
    non_resident: Figure
    named: Figure
    recallable: Figure
    lost: Figure
    newest: Figure

    worst: float
    worst_run: str
    dearer: float
    refused: int
    rules: dict[str, int]
    over: int
    over_excused: int
    breaks: int
    collections: float | None
    off: int | None
    report_error: float | None
    times: list[Span]


class HalfReport(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of one half of the runs: those that constants are fitted on, or those that judge."""

    half: Half
    runs: int
    groups: int
    requests: int
    rows: list[PolicyRow]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run of the lab: what was replayed, a row for each policy, gaps, and every result."""

    lab: int = 1
    version: str
    source: str
    regime: str
    sheet: PriceSheet
    least_tokens: int
    bits_every: int = 0
    runs: int
    groups: int
    requests: int
    steps: int
    needs: int
    tokens: int
    rows: list[PolicyRow]
    halves: list[HalfReport] = []
    gaps: list[Gap] = []
    survival: list[SurvivalRow] = []
    results: list[RunResult]


def is_usable(report: Report, row: PolicyRow) -> bool:
    """Return whether a policy is no oracle and at least 99% of its requests are valid and fit."""
    return row.kind != "oracle" and row.refused + row.over <= MOST_WRONG * report.requests


def summarize(policy: Policy, results: Sequence[RunResult]) -> PolicyRow:
    """Return the row of one policy, from its results."""
    played = [result for result in results if not result.error]
    worst = max(played, key=lambda result: result.ratio, default=None)
    return PolicyRow(
        policy=policy.name,
        kind=policy.kind,
        version=policy.version,
        settings=policy.settings,
        runs=len(played),
        failed=len(results) - len(played),
        errors=sorted({result.error for result in results if result.error}),
        worst=worst.ratio if worst else 0.0,
        worst_run=worst.run if worst else "",
        dearer=sum(r.ratio > DEARER for r in played) / len(played) if played else 0.0,
        refused=sum(r.refused for r in played),
        rules=_summed([r.rules for r in played]),
        over=sum(r.over for r in played),
        over_excused=sum(r.over_excused for r in played),
        breaks=sum(r.breaks for r in played),
        times=spans(played),
        **_shares(played),
        **_reported(played),
    )


def _shares(played: Sequence[RunResult]) -> dict[str, Any]:
    draws = Bootstrap([result.group for result in played])

    def share(part: str, whole: str, empty: float = 1.0) -> Figure:
        return draws.share(
            [getattr(r, part) for r in played], [getattr(r, whole) for r in played], empty
        )

    missing = [result.needs - result.resident for result in played]
    return {
        "bill": share("bill", "unpruned"),
        "bill_15k": draws.share(
            [r.bill + r.prefix for r in played], [r.unpruned + r.prefix for r in played]
        ),
        "bits": _copied(played, draws),
        "strict": share("strict", "steps"),
        "clean": share("clean", "steps"),
        "line_step": share("line_steps_kept", "line_steps"),
        "word": share("words_kept", "words"),
        "wide": share("wide", "needs"),
        "non_resident": draws.share(missing, [r.needs for r in played], 0.0),
        "named": share("named", "needs", 0.0),
        "recallable": share("recallable", "needs", 0.0),
        "lost": share("lost", "needs", 0.0),
        "newest": share("newest_shown", "newest"),
    }


def _copied(played: Sequence[RunResult], draws: Bootstrap) -> CopiedBits | None:
    steps = sum(result.bits_steps for result in played)
    if not steps:
        return None
    more = [result.bits - result.bits_whole for result in played]
    span = [result.bits_bare - result.bits_whole for result in played]
    return CopiedBits(
        excess=draws.share(more, [result.bits_whole for result in played], 0.0),
        share=draws.share(more, span, 0.0),
        steps=steps,
    )


def _reported(played: Sequence[RunResult]) -> dict[str, Any]:
    """Return what the policy reports compared with what was seen; None if it reports nothing."""
    counted = [(r, r.collections) for r in played if r.collections is not None]
    errors = [r.report_error for r in played if r.report_error is not None]
    return {
        "collections": sum(count for _, count in counted) if counted else None,
        "off": sum(r.breaks != count for r, count in counted) if counted else None,
        "report_error": max(errors) if errors else None,
    }


def spans(played: Sequence[RunResult]) -> list[Span]:
    """Return the decision times by the length of the history; empty if none were measured."""
    times = sorted(pair for result in played for pair in result.seconds)
    found, least = [], 0
    for below in (*LENGTHS, None):
        inside = [1e3 * s for n, s in times if n >= least and (below is None or n < below)]
        if inside:
            p50, p99 = quantile(inside, 0.5), quantile(inside, 0.99)
            found.append(
                Span(below=below, requests=len(inside), p50=p50, p99=p99, most=max(inside))
            )
        least = below or 0
    return found


def _summed(counts: Sequence[dict[str, int]]) -> dict[str, int]:
    rules = sorted({rule for each in counts for rule in each})
    return {rule: sum(each.get(rule, 0) for each in counts) for rule in rules}


def _halves(policies: Sequence[Policy], results: Sequence[RunResult]) -> list[HalfReport]:
    """Return each half by itself; none if all runs are of one."""
    parts = {half: [r for r in results if half_of(r.group) == half] for half in HALVES}
    if not all(parts.values()):
        return []
    return [_half(half, policies, part) for half, part in parts.items()]


def _half(half: Half, policies: Sequence[Policy], results: Sequence[RunResult]) -> HalfReport:
    runs = {result.run: result for result in results}.values()
    return HalfReport(
        half=half,
        runs=len(runs),
        groups=len({result.group for result in runs}),
        requests=sum(result.requests for result in runs),
        rows=[summarize(p, [r for r in results if r.policy == p.name]) for p in policies],
    )


def report(
    policies: Sequence[Policy],
    results: Sequence[RunResult],
    *,
    version: str,
    source: str,
    regime: str,
    sheet: PriceSheet,
    least_tokens: int = 0,
    bits_every: int = 0,
) -> Report:
    """Return the report on results, which have each run once for each policy."""
    own = {policy.name: [r for r in results if r.policy == policy.name] for policy in policies}
    runs = next(iter(own.values()), [])
    judged = {r.run: r for r in results if not r.error}
    return Report(
        version=version,
        source=source,
        regime=regime,
        sheet=sheet,
        least_tokens=least_tokens,
        bits_every=bits_every,
        runs=len(runs),
        groups=len({r.group for r in runs}),
        requests=sum(r.requests for r in runs),
        steps=sum(r.steps for r in judged.values()),
        needs=sum(r.needs for r in judged.values()),
        tokens=sum(r.tokens for r in runs),
        rows=[summarize(policy, own[policy.name]) for policy in policies],
        halves=_halves(policies, results),
        gaps=gaps({p.name: p.kind for p in policies}, results, window=regime != "cost"),
        survival=survival_rows(list(own), results),
        results=list(results),
    )
