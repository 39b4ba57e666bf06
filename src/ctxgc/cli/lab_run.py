"""`ctxgc lab run`: every policy over every run, as a table, as JSON and as a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ctxgc.cli.lab_options import Runs, run_options
from ctxgc.cli.lab_progress import progress
from ctxgc.cli.output_file import OutputFile
from ctxgc.cli.report import words_of_call

if TYPE_CHECKING:
    from ctxgc.lab.experiment import Experiment
    from ctxgc.lab.summary import Report

DEFAULTS = ("never", "ctxgc", "ctxgc-lean", "ctxgc-careful")
STDOUT = Path("-")
_FILE = OutputFile(allow_dash=True)


@click.command(
    context_settings={"show_default": True},
    epilog="Example: ctxgc lab run --data DIR --set claude_code --policy never --policy ctxgc --jobs 4",
)
@click.option("--demo", is_flag=True, help="Play the corpus that ships with ctxgc (the default).")
@run_options(required=False)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    help="A policy, a kind of them, or all; again, or with commas, for more.",
)
@click.option("--regime", default="cost", help="cost, window:50% or window:40000.")
@click.option("--cluster", help="Play on a Dask cluster: its address, or `local`.")
@click.option("--json", "json_file", type=_FILE, help="Write the whole report as JSON.")
@click.option("--html", "html_file", type=_FILE, help="Write the report as one page.")
@click.option("--markdown", "markdown_file", type=_FILE, help="Write its tables as Markdown.")
@click.option("--timing", is_flag=True, help="Report decision times, which differ at each run.")
@click.option("--quiet", "-q", is_flag=True, help="Draw no table.")
def run(
    *,
    demo: bool,
    runs: Runs,
    policies: tuple[str, ...],
    regime: str,
    jobs: int,
    cluster: str | None,
    json_file: Path | None,
    html_file: Path | None,
    markdown_file: Path | None,
    timing: bool,
    quiet: bool,
) -> None:
    """Replay runs request by request through each policy, and print what it cost and what it lost.

    The same runs give the same report, byte for byte, whatever --jobs and --cluster. A report that is
    written to `-` is printed in place of the terminal's tables.
    """
    from ctxgc.lab.experiment import Experiment  # noqa: PLC0415 - help must be there at once
    from ctxgc.lab.policies import chosen  # noqa: PLC0415

    if demo and runs["data"] is not None:
        raise click.UsageError("--demo and --data exclude each other")
    files = [file for file in (json_file, html_file, markdown_file) if file is not None]
    if len({file.absolute() for file in files}) < len(files):
        raise click.UsageError("two reports cannot go to one file")
    words = [word for each in policies or DEFAULTS for word in each.split(",")]
    with words_of_call():
        names = tuple(chosen(words))
        experiment = Experiment(policies=names, regime=regime, timing=timing, **runs)
        experiment.order()
    found = _conducted(experiment, jobs, cluster)
    if json_file is not None:
        _write(json_file, _json(found))
    if html_file is not None:
        _write(html_file, _page(found))
    if markdown_file is not None:
        _write(markdown_file, _markdown(found))
    if not quiet and STDOUT not in files:
        from ctxgc.cli.lab_table import draw  # noqa: PLC0415

        draw(found)
        for file in files:
            click.echo(f"wrote {file}")


def _conducted(experiment: Experiment, jobs: int, cluster: str | None) -> Report:
    from ctxgc.lab.experiment import conduct  # noqa: PLC0415

    with progress(lambda: sum(1 for _ in experiment.runs())) as done:
        if cluster is None:
            return conduct(experiment, jobs, done)
        from ctxgc.lab.fleet import conduct_on  # noqa: PLC0415 - needs an extra

        return conduct_on(cluster, experiment, done, jobs)


def _json(found: Report) -> bytes:
    from ctxgc.core.readable import readable_json  # noqa: PLC0415

    return readable_json(found)


def _page(found: Report) -> bytes:
    from ctxgc.lab.html import page  # noqa: PLC0415

    return page(found).encode()


def _markdown(found: Report) -> bytes:
    from ctxgc.lab.markdown import document  # noqa: PLC0415

    return document(found).encode()


def _write(file: Path, report: bytes) -> None:
    from ctxgc.stores.files import write_atomic  # noqa: PLC0415

    if file == STDOUT:
        click.echo(report, nl=False)
    else:
        write_atomic(file, report)
