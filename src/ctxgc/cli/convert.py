"""`ctxgc convert`: a session of one coding agent, written so that the other one resumes it."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import click

from ctxgc.cli.agent_reader import reader_of
from ctxgc.cli.output import (
    output_options,
    warn,
    write_command,
    write_facts,
    write_json,
    write_ok,
    write_text,
)
from ctxgc.cli.session_argument import find_session
from ctxgc.cli.stores import agents_address
from ctxgc.drawing import count
from ctxgc.errors import StoreError
from ctxgc.files import create_private
from ctxgc.insight import CONVERTIBLE, RESUME, SessionConversion, convert_session
from ctxgc.session import OPENING, utc_now

_EPILOG = """\b
Examples:
  ctxgc convert claude-code codex             the newest session here
  ctxgc convert codex claude-code 01a1ee81    this session
  ctxgc convert claude-code codex --dry-run   what would be carried over
  ctxgc convert codex claude-code -o out/     not into the folder of the agent

Exit codes: 0 written, 1 an error, 2 usage error.
"""


@click.command(short_help="Write a session so that another agent resumes it.", epilog=_EPILOG)
@click.argument("source", metavar="FROM", type=click.Choice(list(CONVERTIBLE)))
@click.argument("target", metavar="TO", type=click.Choice(list(CONVERTIBLE)))
@click.argument("session", required=False)
@click.option("-o", "--output", metavar="FILE", help="Write it here; a folder ends in /.")
@click.option("--dry-run", is_flag=True, help="Write nothing; say what would be carried over.")
@output_options
def convert(
    *,
    source: str,
    target: str,
    session: str | None,
    output: str | None,
    dry_run: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write a SESSION of the agent FROM as a new session of the agent TO.

    SESSION is a file, the beginning of a session id, or `latest` (the default): the newest one in this
    project. The new session holds the window that FROM would go on with: what was said, the calls with
    their results, and images. Thinking, and what FROM itself put in (instructions, reminders), stays
    behind. Tombstones name the call that recalls if TO has the server of ctxgc. SESSION is not changed, and
    no file is overwritten.
    """
    if source == target:
        raise click.UsageError(f"FROM and TO are both {source}: name two agents")
    path = find_session(session, only_here=session is None, agent=source)
    session_id = str(uuid4())
    reader = reader_of(target, agents_address(None))
    made = convert_session(
        path, target, session_id=session_id, here=Path.cwd(), at=utc_now(), retell=reader.retold
    )
    place = _place(output, made.place)
    if not dry_run and not create_private(place, made.data):
        raise StoreError(f"{place} already exists", hint="name another file with -o")
    command = " ".join((*RESUME[CONVERTIBLE[target]], session_id))
    if as_json:
        known = {"source": str(path), "agent": target, "session_id": session_id}
        told = {"file": None if dry_run else str(place), "resume": command}
        write_json({**known, **made.to_dict(), **told})
    elif not quiet:
        _write(made, path)
        if OPENING.encode() in made.data and (said := reader.warning or reader.advice):
            warn(said)
        if dry_run:
            click.echo("dry run, nothing was written")
        else:
            write_ok(f"wrote {place}")
            write_text(_next(made, place))
            write_command(command)


def _place(output: str | None, native: Path) -> Path:
    """Return the file to write: where the agent looks for it, unless another place is named."""
    if output is None:
        return native
    path = Path(output).expanduser()
    return path / native.name if output.endswith("/") or path.is_dir() else path


def _write(made: SessionConversion, path: Path) -> None:
    left = [f"{number:,} {what}" for what, number in sorted(made.left.items())]
    write_facts(
        [
            ("session", str(path)),
            ("carried over", f"{count(made.messages, 'message')}, {count(made.calls, 'call')}"),
            ("left behind", ", ".join(left) or "nothing"),
            *(("repaired", fix) for fix in made.fixes),
        ],
        indent="  ",
    )


def _next(made: SessionConversion, place: Path) -> str:
    where = "" if place == made.place else f", copy it to {made.place} and run"
    folder = "" if Path(made.project) == Path.cwd() else f" in {made.project}"
    return f"to resume it{folder}{where}:"
