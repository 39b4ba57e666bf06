"""`ctxgc undo`: a session file that was pruned in place, put back."""

from __future__ import annotations

from pathlib import Path

import click

from ctxgc.cli.report import done, output_options, write_json
from ctxgc.cli.session_argument import find_session, session_folders
from ctxgc.cli.stash_store import age
from ctxgc.errors import InputError
from ctxgc.pruning import Backup, newest_backup, put_back
from ctxgc.pruning.backups import FOLDER, backups_of

_EPILOG = """\b
Examples:
  ctxgc undo                 the last `ctxgc prune --in-place` in this folder or of an agent's session
  ctxgc undo latest          that of the newest session
  ctxgc undo session.jsonl   that of this file

Exit codes: 0 it is what it was, 1 an error or nothing to undo, 2 a wrong call.
"""


@click.command(short_help="Put a session file back that was pruned in place.", epilog=_EPILOG)
@click.argument("session", required=False)
@output_options
def undo(session: str | None, as_json: bool, quiet: bool) -> None:
    """Put SESSION back as it was before `ctxgc prune --in-place`, byte for byte.

    What the agent added to the file since stays, behind the original. A file that was changed in any
    other way, or that is being written, is left alone.
    """
    backup = _newest(session)
    added = put_back(backup)
    if as_json:
        write_json(
            {"file": str(backup.target), "pruned_at": backup.made_at, "bytes_added_since": added}
        )
    elif not quiet:
        since = f"; {added:,} bytes that came since stay behind it" if added else ""
        done(
            f"{backup.target} is what it was before it was pruned ({age(backup.made_at)} ago){since}"
        )


def _newest(session: str | None) -> Backup:
    if session is None:
        kept = (place for root in session_folders() for place in root.glob(f"**/{FOLDER}"))
        found = newest_backup([Path(), *(place.parent.parent for place in kept)])
    else:
        found = next(reversed(backups_of(find_session(session, only_here=True))), None)
    if found is None:
        raise InputError(
            "there is no pruning to undo" + ("" if session is None else f" for {session}"),
            hint="only prune --in-place and doctor --fix can be undone; -o never touches the original",
            field="session",
        )
    return found
