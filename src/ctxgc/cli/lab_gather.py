"""`ctxgc lab run --suite gather`: scripted tasks with a known answer, played by each policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from ctxgc.cli.lab_options import Runs, figure_columns, progress, write_titled
from ctxgc.cli.output import write_text

if TYPE_CHECKING:
    from ctxgc.lab import GatherReport

Gather = dict[str, Any]
"""The fields of a `GatherSuite` that choose its tasks, and whether to print the matrices."""

GATHER_DEFAULTS = (
    "never", "mask-oldest", "truncate-oldest", "ctxgc", "ctxgc-careful", "ctxgc-lean",
    "ctxgc-proven",
)  # fmt: skip
_FAMILIES = ("compare", "compute", "edit", "plan", "error", "refer", "chat")
_TOOLS = ("read_file", "shell", "sql", "web", "mcp", "unknown")


def gather_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of the suite, as `gather`: None without `--suite gather`."""
    options = (
        click.option(
            "--suite",
            type=click.Choice(["gather"]),
            help="Play scripted tasks with a known answer instead of recorded runs.",
        ),
        click.option(
            "--window", "windows", type=click.IntRange(min=4_000), multiple=True,
            help="With --suite: a window, in tokens; repeat it for more.  [default: all]",
        ),
        click.option(
            "--family", "families", type=click.Choice(_FAMILIES), multiple=True,
            help="With --suite: a family of tasks.  [default: all]",
        ),
        click.option(
            "--tool", "tools", type=click.Choice(_TOOLS), multiple=True,
            help="With --suite: a kind of tools.  [default: all]",
        ),
        click.option("--seed", type=int, default=0, help="With --suite: other tasks."),
        click.option(
            "--matrix", is_flag=True, help="With --suite: families by tools, for each policy."
        ),
    )  # fmt: skip
    given = _with_gather(command)
    for option in reversed(options):
        given = option(given)
    return given


def _with_gather(command: Callable[..., None]) -> Callable[..., None]:
    @wraps(command)
    def call(*, suite: str | None, **given: Any) -> None:
        fields = ("windows", "families", "tools", "seed", "matrix")
        chosen = {field: given.pop(field) for field in fields}
        named = {field: value for field, value in chosen.items() if value}
        if suite is None and named:
            raise click.UsageError(f"--suite gather is missing for: {', '.join(named)}")
        command(gather=None if suite is None else named, **given)

    return call


def refuse_recorded(given: Mapping[str, object]) -> None:
    """Refuse options that only recorded runs have.

    Raises:
        UsageError: one of them is given.
    """
    wrong = [name for name, value in given.items() if value]
    if wrong:
        raise click.UsageError(f"--suite gather does not go with {', '.join(wrong)}")


class GatherPage:
    """What was found, ready to be written."""

    def __init__(self, report: GatherReport, *, matrix: bool) -> None:
        self._report = report
        self._matrix = matrix

    def json(self) -> bytes:
        """Return the whole report."""
        from ctxgc.drawing import readable_json  # noqa: PLC0415

        return readable_json(self._report)

    def markdown(self) -> bytes:
        """Return the tables as Markdown."""
        from ctxgc.lab import gather_markdown  # noqa: PLC0415

        return gather_markdown(self._report, matrix=self._matrix).encode()

    def draw(self) -> None:
        """Write the tables to stdout."""
        from ctxgc.lab import gather_tables, headline  # noqa: PLC0415

        write_text(headline(self._report), indent="")
        for table in gather_tables(self._report, matrix=self._matrix):
            write_titled(table.title, figure_columns(table.head), table.rows, keys=2)


def play_gather(names: tuple[str, ...], gather: Gather, runs: Runs, jobs: int) -> GatherPage:
    """Play the suite with these policies.

    Raises:
        ConfigError: a policy or the price sheet does not exist.
    """
    from ctxgc.lab import GatherSuite, run_gather  # noqa: PLC0415

    chosen = {field: value for field, value in gather.items() if field != "matrix"}
    suite = GatherSuite(
        policies=names,
        every=runs["every"],
        sheet=runs["sheet"],
        most_tasks=runs["most_runs"],
        **chosen,
    )
    with progress(lambda: len(suite.plans())) as done:
        report = run_gather(suite, jobs, done)
    return GatherPage(report, matrix=bool(gather.get("matrix")))
