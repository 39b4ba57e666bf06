"""The tables of a gather report, for a terminal and for the docs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ctxgc.lab.gather.judge import TaskResult
from ctxgc.lab.gather.suite import TRAITS, VALUES, GatherReport, GatherRow, grouped
from ctxgc.lab.markdown import grid

_COLUMNS = ("tasks", "from the view", "<= 1 recall", "lost", "over", "recalls", "cost")
_CELL = "from the view / at most one recall, %, where what is needed fits"
_CROSSED = ("tool", "family", "fill", "content", "format")


class GatherTable(NamedTuple):
    """A table with its title; its first two columns are text."""

    title: str
    head: tuple[str, ...]
    rows: list[tuple[str, ...]]


def gather_tables(report: GatherReport, *, matrix: bool = False) -> Iterator[GatherTable]:
    """Yield the tables of a report: all tasks, then those that fit by each of their traits.

    With `matrix`, there is also one table of families and tools for each policy and window.
    """
    yield GatherTable("all tasks", ("policy", "what fits", *_COLUMNS), _overall(report))
    fitting = [result for result in report.results if result.fits]
    for trait in _CROSSED:
        yield _crossed(f"by {trait}: {_CELL}", fitting, ("policy", "window"), trait)
    if matrix:
        for name in report.policies:
            own = [result for result in fitting if result.policy == name]
            yield _crossed(f"{name}: {_CELL}", own, ("window", "family"), "tool")


def gather_markdown(report: GatherReport, *, matrix: bool = False) -> str:
    """Return the tables as Markdown, below one sentence about what was played."""
    parts = [headline(report)]
    for table in gather_tables(report, matrix=matrix):
        parts += [f"{table.title[0].upper()}{table.title[1:]}:", grid(table.head, table.rows)]
    return "\n\n".join(parts) + "\n"


def headline(report: GatherReport) -> str:
    """Return one sentence about what was played."""
    fitting = len({result.plan.id for result in report.results if result.fits})
    return (
        f"Gather and use: {report.tasks:,} scripted tasks, {fitting:,} of them with content that fits "
        f"the window (seed {report.seed}; sheet `{report.sheet.name}`)."
    )


def _overall(report: GatherReport) -> list[tuple[str, ...]]:
    rows = sorted(
        grouped(report.results, "fits"),
        key=lambda row: (
            VALUES["fits"].index(row.group["fits"]),
            report.policies.index(row.policy),
        ),
    )
    return [(row.policy, row.group["fits"], *_figures(row)) for row in rows]


def _figures(row: GatherRow) -> tuple[str, ...]:
    return (
        f"{row.tasks:,}",
        f"{100 * row.from_view:.1f}",
        f"{100 * row.one_recall:.1f}",
        f"{row.lost:,}",
        f"{row.over:,}",
        f"{row.recalls:.2f}",
        "-" if row.cost is None else f"{row.cost:.2f}",
    )


def _crossed(
    title: str, results: Sequence[TaskResult], down: tuple[str, str], across: str
) -> GatherTable:
    """Return a table with two traits (or the policy) down and one across."""
    found = set(map(TRAITS[across], results))
    columns = [value for value in VALUES[across] if value in found]
    traits = [trait for trait in down if trait != "policy"]
    cells: dict[tuple[str, ...], dict[str, str]] = {}
    for row in grouped(results, *traits, across):
        named = {"policy": row.policy, **row.group}
        said = f"{100 * row.from_view:.0f}/{100 * row.one_recall:.0f}"
        cells.setdefault(tuple(named[trait] for trait in down), {})[row.group[across]] = said
    # The order of the policies: results come task by task.
    order = sorted(cells, key=lambda key: _place(results, down[0], key[0]))
    rows = [(*key, *(cells[key].get(column, "-") for column in columns)) for key in order]
    return GatherTable(title, (*down, *columns), rows)


def _place(results: Sequence[TaskResult], trait: str, value: str) -> int:
    said = (r.policy if trait == "policy" else TRAITS[trait](r) for r in results)
    return list(dict.fromkeys(said)).index(value)
