"""`ctxgc doctor`: is everything as it should be, and can it be repaired?"""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from ctxgc.agents import Finding, check
from ctxgc.cli.doctor_history import check_history
from ctxgc.cli.doctor_store import check_config, check_environment, check_store, store_url_of
from ctxgc.cli.report import FOUND_PROBLEMS, output_options, paint, write_json
from ctxgc.cli.session_argument import find_session
from ctxgc.cli.stash_store import printable, store_option
from ctxgc.config import SessionSettings, find_gc_file
from ctxgc.stores import DEFAULT_URL

_COLOURS = {"ok": "green", "info": "blue", "warning": "yellow", "error": "red"}
_EPILOG = """\b
Examples:
  ctxgc doctor                        the configuration, the store and the agents of this place
  ctxgc doctor session.jsonl          a history: lines that are damaged, rules that are broken
  ctxgc doctor session.jsonl --fix    repairs it; the original is kept, ctxgc undo puts it back
  ctxgc doctor sqlite:sessions.db     a store: its sessions, handles and checkpoints
  ctxgc doctor .ctxgc/gc.json         a configuration
  ctxgc doctor agents                 what ctxgc install did

Exit codes: 0 all is well (or was repaired), 1 something was found, 2 a wrong call.
"""


@click.command(short_help="Check histories, stores, configuration, installation.", epilog=_EPILOG)
@click.argument("what", metavar="[HISTORY|STORE|CONFIG|agents]", required=False)
@store_option
@click.option("--fix", is_flag=True, help="Repair what can be repaired, and say what was done.")
@output_options
@click.pass_context
def doctor(
    ctx: click.Context,
    /,
    *,
    what: str | None,
    store_url: str | None,
    fix: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Check a history, a store, a configuration or an installation; without a name, all but histories.

    A history is a transcript of any agent (a file, the beginning of a session id, or `latest`) or a
    JSON file of messages.
    """
    found = _everything(store_url) if what is None else _one(what, fix=fix)
    if as_json:
        write_json([msgspec.to_builtins(each) for each in found])
    elif not quiet:
        for each in found:
            following = f" (next: {each.fix})" if each.fix else ""
            level = paint(f"{each.level}:", _COLOURS[each.level])
            click.echo(f"{level} {printable(f'{each.where}: {each.what}{following}')}")
    ctx.exit(FOUND_PROBLEMS if any(x.level in ("warning", "error") for x in found) else 0)


def _everything(store_url: str | None) -> list[Finding]:
    config = find_gc_file()
    url = store_url or SessionSettings.from_env().store or DEFAULT_URL
    return [
        *(check_environment() if config is None else check_config(config)),
        *check_store(url, is_wanted=store_url is not None),
        *check(),
    ]


def _one(what: str, *, fix: bool) -> list[Finding]:
    if what in ("agents", "install"):
        return check()
    url = store_url_of(what)
    if url is not None:
        return check_store(url, is_wanted=True)
    path = Path(what)
    if path.suffix == ".json" and path.parent.name in (".ctxgc", ".jaato"):
        return check_config(path)
    return check_history(find_session(what, only_here=fix), fix=fix)
