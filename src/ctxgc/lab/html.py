"""The report as one HTML page: tables, charts, and what the figures do and do not say."""

from __future__ import annotations

from collections.abc import Sequence

from ctxgc.drawing import Section, count, figure, joined, listing, paragraph
from ctxgc.drawing import page as html_page
from ctxgc.lab import html_charts, html_tables
from ctxgc.lab.summary import PolicyRow, Report

_DEFINITIONS = (
    (
        "bill: what all requests cost, as a share of never pruning; the common prefix with the last "
        "request is read from the cache, the rest is written. Confidence intervals are bootstrapped over "
        "groups of runs."
    ),
    (
        "+15k: the bill when each request begins with 15,000 constant tokens, as the system prompt and the "
        "tools of real agents are."
    ),
    (
        "bits: how many more bits the recorded answers take, compressed with the view as dictionary, "
        "than with the whole history, in percent. There is no definition of a need in it."
    ),
    "worst: the bill of the most expensive run.",
    (
        "strict: steps all of whose needs were still in the view with their surroundings; clean: they "
        "were there, or were at least named. Only steps with a need count."
    ),
    (
        "line-step and word check what policies do not aim at: steps whose quoted lines were all still in "
        "the view, and rare plain words that were."
    ),
    "not res.: needs that were not in the view when they were used.",
    "wrong: invalid histories plus requests over the limit; see Soundness for each.",
)

_MEASURES = (
    (
        "Recorded runs are replayed request by request. A policy sees the history so far and returns what "
        "it would send; that is priced with prompt caching, and checked for rules that providers enforce."
    ),
    (
        "A need is an identifier-like fact (a path, a symbol, an id, a number of four digits or more) that "
        "the agent's next message uses, that occurred before, and that is neither in the head nor in the "
        "last two messages."
    ),
    (
        "A need is resident if it is in the view with the 24 characters before and after it, named if only "
        "the bare fact is, recallable if the view shows a live handle to it, else lost."
    ),
)

_IS_NOT = (
    (
        "It is open loop: the recorded agent continues as it did, whatever was pruned. Confusion, detours "
        "and repeated reads that pruning would cause do not show, nor does the cost of a recall."
    ),
    (
        "It is a lexical proxy: text that is used again may be there by coincidence, and text that is never "
        "quoted may still have influenced the model."
    ),
    "It does not say whether a task succeeds. No model is called.",
    (
        "Recorded runs often lack the system prompt and the tool schemas; with these in the cached prefix, "
        "every saving is a smaller share of the bill."
    ),
    (
        "Cache breakpoints are assumed to be perfect, and tokens are counted by the lab, not by a "
        "provider."
    ),
)

_KINDS = {
    "ours": "the public Session of ctxgc, driven as an agent would drive it",
    "peer": "another library, installed in its own environment, with the settings shown",
    "restated": "a published rule that we reimplemented for the lab; not its authors' code",
    "oracle": "knows the future: a bound to compare with, not a policy that can be used",
    "base": "the whole history with every request",
}


def _caption_of_front(beyond: Sequence[tuple[str, float, float]]) -> str:
    """Return the caption of the bill chart, which names the policies too expensive to be drawn."""
    said = (
        "Up and to the left is better. The dotted line joins the policies that no other beats on both. "
        "Rings do not count: oracles, and policies with more than 1% of requests invalid or over the "
        "limit. Crosses are 95% confidence intervals."
    )
    if not beyond:
        return said
    names = ", ".join(f"{name} (bill {bill:.2f}, {100 * kept:.1f}%)" for name, bill, kept in beyond)
    return f"{said} Too expensive for this chart: {names}."


_GAPS = "Compared with the oracles and the best of the others"


def html_report(report: Report) -> str:
    """Return a self-contained page of a report: no network, no script, light and dark."""
    sections = [
        _summary(report),
        *_halves(report),
        _front(report),
        _spread(report),
        _needs(report),
        *_gaps(report),
        _soundness(report),
        *_times(report),
        _policies(report),
        *_failures(report),
        _meaning(),
        _runs(report),
    ]
    return html_page(
        "ctxgc lab",
        sections,
        subtitle=_subtitle(report),
        facts=_facts(report),
        footer=f"Made by ctxgc {report.version}, `ctxgc lab run`. The same runs give the same page.",
    )


def _subtitle(report: Report) -> str:
    sheet = report.sheet
    life = "does not expire" if sheet.ttl_seconds is None else f"lives {sheet.ttl_seconds:g} s"
    least = f" Runs of at least {report.least_tokens:,} tokens." if report.least_tokens else ""
    return (
        f"Played: {report.source}. Regime {report.regime}; prices {sheet.name} of "
        f"{sheet.as_of or 'no date'}: a cached token costs {sheet.read:g}, a written one "
        f"{sheet.write:g} times an uncached one, and the cache {life}.{least}"
    )


def _facts(report: Report) -> list[tuple[str, str]]:
    counted = [
        (
            f"{report.runs:,}",
            f"{'run' if report.runs == 1 else 'runs'} in {count(report.groups, 'group')}",
        ),
        (f"{report.requests:,}", "requests replayed"),
        (f"{report.tokens / 1e6:.2f} M", "tokens of history"),
        (f"{report.needs:,}", f"needs in {report.steps:,} steps"),
    ]
    ours = next((row for row in report.rows if row.kind == "ours" and row.runs), None)
    if ours is None:
        return counted
    return [
        (f"{ours.bill.value:.3f}", f"bill of {ours.policy} (1 = never pruning)"),
        (f"{100 * ours.clean.value:.1f}%", f"clean steps of {ours.policy}"),
        *counted,
    ]


def _summary(report: Report) -> Section:
    body = [html_tables.quality(report), listing(_DEFINITIONS)]
    return Section("Summary", joined(body), "summary")


def _halves(report: Report) -> list[Section]:
    if not report.halves:
        return []
    runs = " and ".join(f"{each.runs:,} to {each.half}" for each in report.halves)
    said = paragraph(
        f"Constants are fitted on one half of the runs and judged by the other ({runs}). A group of runs "
        "belongs to a half by its name, in every set and at every size."
    )
    return [
        Section(
            "The half that fits, and the half that judges",
            joined([said, html_tables.halves(report)]),
            "halves",
        )
    ]


def _front(report: Report) -> Section:
    drawn = [
        figure(
            html_charts.front(report, measure),
            _caption_of_front(html_charts.beyond(report, measure)),
            f"Bill against {name}",
        )
        for measure, name in (("clean", "clean steps"), ("line_step", "line-step"))
    ]
    return Section("What each policy costs and keeps", joined(drawn), "front")


def _spread(report: Report) -> Section:
    caption = "Each dot is a run; the band holds the middle half, the line is the median."
    body = [
        figure(html_charts.spread(report), caption, "Bill of every single run"),
        html_tables.worst(report),
    ]
    return Section("Run by run", joined(body), "spread")


def _needs(report: Report) -> Section:
    caption = "Whiskers are 95% confidence intervals over groups."
    body = [
        figure(html_charts.non_resident(report), caption, "Needs that were no longer in the view"),
        html_tables.needs(report),
    ]
    return Section("What was missing when it was used", joined(body), "needs")


def _gaps(report: Report) -> list[Section]:
    if not report.gaps:
        return []
    said = paragraph(
        "On the runs that both could play. An oracle knows everything that will be used; what it saves is "
        "a bound for policies that lose nothing, and a share above 100% means that something was lost."
    )
    return [Section(_GAPS, joined([said, html_tables.gaps(report)]), "gaps")]


def _soundness(report: Report) -> Section:
    said = paragraph(
        "A provider refuses an invalid history, whatever it saves. Prefix breaks are requests whose "
        "beginning differs from the last one; the collections that a policy counts must agree with them. "
        "Newest shown is the share of facts of the newest results that reached the model at all."
    )
    return Section("Soundness", joined([said, html_tables.soundness(report)]), "soundness")


def _times(report: Report) -> list[Section]:
    if not any(row.times for row in report.rows):
        return []
    said = paragraph(
        "Milliseconds per request, by the length of the history. They differ from run to run."
    )
    caption = "Median (p50) and 99th percentile (p99) of ctxgc's own policies."
    drawn = figure(html_charts.times(report), caption)
    return [Section("Decision time", joined([said, drawn, html_tables.times(report)]), "times")]


def _policies(report: Report) -> Section:
    kinds = {row.kind for row in report.rows}
    body = [
        html_tables.policies(report),
        listing(f"{kind}: {said}" for kind, said in _KINDS.items() if kind in kinds),
    ]
    return Section("Versions and settings", joined(body), "policies")


def _failures(report: Report) -> list[Section]:
    failed = [row for row in report.rows if row.failed]
    if not failed:
        return []
    body = listing(_failure(row) for row in failed)
    return [Section("What failed", body, "failures")]


def _failure(row: PolicyRow) -> str:
    return f"{row.policy}: {count(row.failed, 'run')}. {'; '.join(row.errors)}"


def _meaning() -> Section:
    body = joined([listing(_MEASURES), paragraph("What it does not measure:"), listing(_IS_NOT)])
    return Section("What this measures, and what it does not", body, "meaning")


def _runs(report: Report) -> Section:
    return Section("All results", html_tables.runs(report), "runs")
