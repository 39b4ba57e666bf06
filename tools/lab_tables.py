"""Write the tables of the lab into README.md and docs/lab.md.

python -m tools.lab_tables --data DIR --jobs 2    play all, keep the reports in out/lab, write the pages
python -m tools.lab_tables --data DIR --policy ours    play these alone; the others as they are kept
python -m tools.lab_tables                        write the pages from the reports that are kept

The peers must be installed: `ctxgc lab peers install`.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from ctxgc.errors import CtxgcError, InputError
from ctxgc.lab import (
    PEERS,
    Experiment,
    HalfReport,
    PolicyRow,
    Report,
    choose_policies,
    markdown_report,
)
from ctxgc.lab.markdown import bits, grid, interval, kind, percent
from ctxgc.lab.peers.catalog import interpreter
from ctxgc.lab.pool import play_all
from ctxgc.lab.results import RunResult
from tools.lab_arguments import parser_of
from tools.requirement_scan import ROOT

REGIMES = ("cost", "window:50%", "window:25%")
PROGRESS_EVERY = 20
KEPT = Path("out") / "lab"
SHORT_COLUMNS = (
    "policy", "kind", "bill [95% CI]", "+15k", "bits excess [95% CI]", "judging half: bill", "bits excess",
    "worst run", "strict", "clean", "line-step", "not resident, window 50%", "25%",
    "invalid histories", "over the limit",
)  # fmt: skip
SHORT_KINDS = ("ours", "peer")
SHORT_NAMES = (
    "opencode-prune", "anthropic-clear", "mask-10-3", "mask-30-10", "mask-oldest", "oracle-message",
)  # fmt: skip
PROOF_COLUMNS = (
    "policy", "kind", "bill [95% CI]", "bits excess [95% CI]", "strict", "not resident, window 50%", "25%",
    "invalid histories", "over the limit",
)  # fmt: skip
PROOF_NAMES = (
    "ctxgc", "langchain-trim", "langchain-clear", "agent-framework", "litellm-trim", "headroom",
    "anthropic-clear", "mask-10-3", "mask-30-10",
)  # fmt: skip


def play(
    data: Path, set_name: str, every: int, jobs: int, words: Sequence[str] = ("all",)
) -> dict[str, Report]:
    """Play policies in each regime; keep and return the reports, with the others' results as they are kept.

    Raises:
        PeerError: a library is not installed: its rows would be empty.
        InputError: what is kept of the others was played on other runs.
    """
    chosen = tuple(choose_policies(words))
    for name in filter(PEERS.__contains__, chosen):
        interpreter(PEERS[name].package)
    KEPT.mkdir(parents=True, exist_ok=True)
    names = tuple(choose_policies(["all"]))
    return {
        regime: _played(
            Experiment(policies=names, data=data, set_name=set_name, regime=regime, every=every),
            chosen,
            jobs,
        )
        for regime in REGIMES
    }


def _played(asked: Experiment, chosen: tuple[str, ...], jobs: int) -> Report:
    start = time.monotonic()
    order = msgspec.structs.replace(asked, policies=chosen).order()
    results = list(play_all(order, asked.runs(), jobs, _progress(asked.regime)))
    report = asked.report([*results, *others(asked, chosen)])
    report_file(asked.regime).write_bytes(msgspec.json.encode(report))
    print(f"{asked.regime}: {report.runs} runs, {time.monotonic() - start:,.0f} s", flush=True)
    return report


def others(asked: Experiment, chosen: tuple[str, ...]) -> list[RunResult]:
    """Return the kept results of the policies that are not played now."""
    if set(asked.policies) <= set(chosen):
        return []
    known = msgspec.json.decode(report_file(asked.regime).read_bytes(), type=Report)
    if known.source != asked.source:
        raise InputError(f"what is kept was played on {known.source}, not on {asked.source}")
    return [result for result in known.results if result.policy not in chosen]


def _progress(regime: str) -> Callable[[], None]:
    counted = itertools.count(1)

    def tell() -> None:
        if (played := next(counted)) % PROGRESS_EVERY == 0:
            print(f"{regime}: {played} runs ...", file=sys.stderr, flush=True)

    return tell


def kept() -> dict[str, Report]:
    """Return the reports of the last run."""
    return {r: msgspec.json.decode(report_file(r).read_bytes(), type=Report) for r in REGIMES}


def report_file(regime: str) -> Path:
    """Return where the report of a regime is kept."""
    return KEPT / f"{regime.replace(':', '-').removesuffix('%')}.json"


def short(reports: dict[str, Report]) -> str:
    """Return the summary of docs/lab.md: what a policy costs, keeps and breaks, one line each."""
    rows = reports["cost"].rows
    names = [row.policy for row in rows if row.kind in SHORT_KINDS] + list(SHORT_NAMES)
    return f"{grid(SHORT_COLUMNS, _lines(reports, names))}\n"


def proof(reports: dict[str, Report]) -> str:
    """Return the table of the README: a few policies of the summary, and fewer columns."""
    columns = [SHORT_COLUMNS.index(column) for column in PROOF_COLUMNS]
    lines = ([line[column] for column in columns] for line in _lines(reports, PROOF_NAMES))
    said = _said(reports["cost"], _rows(reports["cost"])["ctxgc"])
    return f"{said}\n\n{grid(PROOF_COLUMNS, lines)}\n"


def _lines(reports: dict[str, Report], names: Iterable[str]) -> Iterator[tuple[str, ...]]:
    cost, half, quarter = (_rows(reports[regime]) for regime in REGIMES)
    judging = next((h for h in reports["cost"].halves if h.half == "judge"), None)
    judged = _rows(judging) if judging else {}
    return (_line(cost[name], half[name], quarter[name], judged.get(name)) for name in names)


def _rows(report: Report | HalfReport) -> dict[str, PolicyRow]:
    return {row.policy: row for row in report.rows}


def _said(report: Report, row: PolicyRow) -> str:
    return (
        f"On {report.runs:,} recorded Claude Code runs with {report.requests:,} requests ({report.source}) "
        f"the default paid {row.bill.value:.3f} of the bill\nof never pruning. {percent(row.strict)}% of the "
        f"steps had all that they used in the view word for word, {percent(row.clean)}% at least by name."
    )


def _line(
    cost: PolicyRow, half: PolicyRow, quarter: PolicyRow, judged: PolicyRow | None
) -> tuple[str, ...]:
    every = (cost, half, quarter)
    missing = (percent(row.non_resident) if row.runs else "-" for row in (half, quarter))
    kept_of = (cost.strict, cost.clean, cost.line_step)
    paid = (interval(cost.bill), f"{cost.bill_15k.value:.3f}", bits(cost)[0])
    told = (f"{judged.bill.value:.3f}", bits(judged)[0]) if judged and judged.runs else ("-", "-")
    played = (*paid, *told, f"{cost.worst:.2f}", *map(percent, kept_of))
    return (
        cost.policy,
        kind(cost),
        *(played if cost.runs else ["-"] * 9),
        *missing,
        f"{sum(row.refused for row in every):,}",
        f"{sum(row.over for row in every):,}",
    )


def spliced(page: str, name: str, text: str) -> str:
    """Return a page with the text between `<!-- table: NAME (begin) -->` and its end replaced.

    Raises:
        ValueError: the page has no such marks.
    """
    begin, end = (f"<!-- table: {name} ({edge}) -->\n" for edge in ("begin", "end"))
    if page.count(begin) != 1 or page.count(end) != 1 or page.index(begin) > page.index(end):
        raise ValueError(f"the page has no marks for the table {name!r}")
    return page.partition(begin)[0] + begin + text + end + page.partition(end)[2]


def write_pages(reports: dict[str, Report], root: Path = ROOT) -> None:
    """Write the tables into their pages."""
    texts = {name: markdown_report(report) for name, report in reports.items()}
    _write(root / "docs" / "lab.md", {"summary": short(reports), **texts})
    _write(root / "README.md", {"proof": proof(reports)})


def _write(path: Path, texts: dict[str, str]) -> None:
    page = path.read_text(encoding="utf-8")
    for name, text in texts.items():
        page = spliced(page, name, text)
    path.write_text(page, encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, if there are runs to play, and write the pages."""
    parser = parser_of("lab_tables", __doc__, "claude_code")
    parser.add_argument("--jobs", "-j", type=int, default=1, help="processes to use")
    parser.add_argument("--policy", action="append", help="a policy, a kind of them, or all")
    asked = parser.parse_args(arguments)
    words = asked.policy or ["all"]
    try:
        if asked.data:
            write_pages(play(asked.data, asked.set, asked.every, asked.jobs, words))
        else:
            write_pages(kept())
    except (CtxgcError, FileNotFoundError) as error:
        parser.error(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
