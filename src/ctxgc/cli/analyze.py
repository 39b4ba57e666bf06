"""`ctxgc analyze`: where the tokens of a session went, what was garbage, what it cost."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import msgspec

from ctxgc.cli.output import output_options, secrets_option, write_json, write_lines
from ctxgc.cli.prune import preview_pruning
from ctxgc.cli.session_argument import optional_session_argument
from ctxgc.drawing import terminal_width
from ctxgc.errors import InputError
from ctxgc.files import write_atomic
from ctxgc.insight import (
    Insight,
    ProgressCallback,
    SessionTimeline,
    analyze_transcript,
    open_transcript,
    timeline_of,
)
from ctxgc.session import SHEETS

_EPILOG = """\b
Examples:
  ctxgc analyze                          the newest session of this project
  ctxgc analyze 5f8c --html report.html  one by its id, as a page with charts
  ctxgc analyze chat.json --json         any file of messages, for programs

SESSION is a file, the beginning of an id (see `ctxgc sessions`), or `latest`. Files are recognised
by their content: Claude Code, Codex, OpenAI, Anthropic, JSON or JSON lines, gzipped or not.

\b
Exit codes: 0 done, 1 an error, 2 usage error.
"""
_SHOW_ABOVE = 4 << 20


@click.command(
    short_help="Show where a session's tokens went, what was garbage, what it cost.",
    epilog=_EPILOG,
)
@optional_session_argument
@click.option("--html", metavar="FILE", help="Write one self-contained page with charts.")
@click.option("--context-limit", type=click.IntRange(min=1), help="The model's window in tokens.")
@click.option(
    "--prices",
    type=click.Choice(sorted(SHEETS)),
    metavar="SHEET",
    help="Price sheet; by default the provider's.",
)
@click.option(
    "--top", type=click.IntRange(min=1), default=8, show_default=True, help="Rows per table."
)
@secrets_option
@output_options
def analyze(
    *,
    session: Path,
    html: str | None,
    context_limit: int | None,
    prices: str | None,
    top: int,
    as_json: bool,
    quiet: bool,
    show_secrets: bool,
) -> None:
    """Show what a recorded session spent its tokens on.

    Tokens by source, tool, file and turn; how full the window was; garbage by reason; the bill with
    and without collections; where the prompt cache broke; and what to do next.
    """
    transcript = open_transcript(session)
    with _progress(hidden=quiet or as_json or transcript.size < _SHOW_ABOVE) as progress:
        found = analyze_transcript(
            transcript, context_limit=context_limit, prices=prices, progress=progress,
            preview=lambda: preview_pruning(session, context_limit),
        )  # fmt: skip
    if html is not None:
        _save_page(Path(html), found, timeline_of(transcript, context_limit=context_limit))
    if as_json:
        write_json(found.to_dict(), secrets=show_secrets)
    elif not quiet:
        _show(found, top=top, page=html)


def _show(found: Insight, *, top: int, page: str | None) -> None:
    from ctxgc.cli.analyze_text import report_lines  # noqa: PLC0415

    write_lines(report_lines(found, top=top, width=terminal_width()))
    if page is not None:
        click.echo(f"  The page: {page}")


def _save_page(path: Path, found: Insight, timeline: SessionTimeline) -> None:
    from ctxgc.dashboard import report_page  # noqa: PLC0415

    if not path.expanduser().parent.is_dir():
        raise InputError(
            f"--html: there is no folder {path.parent}", hint="create it first", field="html"
        )
    page = report_page(found, msgspec.json.encode(timeline))
    write_atomic(path.expanduser(), page.encode("utf-8", "replace"))


@contextmanager
def _progress(*, hidden: bool) -> Iterator[ProgressCallback]:
    """Yield a callback that shows progress on standard error if that is a terminal."""
    if hidden or not sys.stderr.isatty():
        yield lambda _stage, _done, _all: None
        return
    from rich.console import Console  # noqa: PLC0415 - 0.1 s
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as bar:
        tasks = {}

        def tell(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bar.add_task(stage, total=total)
            bar.update(tasks[stage], completed=done, total=total)

        yield tell
