"""`ctxgc doctor`: check histories, stores, configurations and installations, and repair histories."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from ctxgc.adapters import FRAMEWORKS, Framework
from ctxgc.agents import Finding, check, check_still, write_in_place
from ctxgc.cli.checkpoint import damage
from ctxgc.cli.config import effective, plugin_problem
from ctxgc.cli.output import FOUND_PROBLEMS, output_options, write_json, write_verdict
from ctxgc.cli.session_argument import find_session
from ctxgc.cli.stores import addresses_of, command_store, store_option
from ctxgc.config import environment_warnings, explain_file, find_gc_file
from ctxgc.drawing import count
from ctxgc.errors import ConfigError, CtxgcError, StoreBusyError, TranscriptError
from ctxgc.insight import (
    Damage,
    Writable,
    broken_rules,
    damaged_lines,
    open_writable,
    repair_transcript,
)
from ctxgc.session import (
    SCHEMES,
    Store,
    copy_in_memory,
    file_of,
    lost_handles,
    open_stored,
    utc_now,
    validate,
)

_COLOURS = {"ok": "green", "info": "blue", "warning": "yellow", "error": "red"}
_EPILOG = """\b
Examples:
  ctxgc doctor                      what is used here: configuration, store
  ctxgc doctor session.jsonl        a history: damaged lines, broken rules
  ctxgc doctor session.jsonl --fix  repair it (ctxgc undo)
  ctxgc doctor sqlite:sessions.db   a store: sessions, handles, checkpoints
  ctxgc doctor .ctxgc/gc.json       a configuration
  ctxgc doctor agents               what ctxgc install did
  ctxgc doctor adapters             agent frameworks here, and tested versions

Exit codes: 0 all is well (or was repaired), 1 problems were found, 2 usage error.
"""


@click.command(short_help="Check histories, stores, configuration, installation.", epilog=_EPILOG)
@click.argument("what", metavar="[HISTORY|STORE|CONFIG|agents|adapters]", required=False)
@store_option
@click.option("--fix", is_flag=True, help="Repair what can be repaired, and list what was done.")
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
    _report(ctx, found, as_json=as_json, quiet=quiet)


_UNBRICK_EPILOG = """\b
Examples:
  ctxgc unbrick latest           the newest session of this project
  ctxgc unbrick 5f8cbb78         this session; then resume it
  ctxgc undo latest              restore the original

Exit codes: 0 it is sound (or was repaired), 1 it cannot be repaired, 2 usage error.
"""


@click.command(short_help="Repair a session that its provider refuses.", epilog=_UNBRICK_EPILOG)
@click.argument("session", default="latest")
@output_options
@click.pass_context
def unbrick(ctx: click.Context, /, *, session: str, as_json: bool, quiet: bool) -> None:
    """Repair SESSION so that its agent can go on with it; the same as `ctxgc doctor SESSION --fix`.

    For sessions that answer every prompt with an error of the provider ("tool_use ids were found without
    tool_result blocks", "thinking blocks cannot be modified"), or that were cut off while they were
    written. Damaged lines are dropped, lost results are noted as interrupted. The original is kept:
    `ctxgc undo` restores it.
    """
    found = check_history(find_session(session, only_here=True), fix=True)
    _report(ctx, found, as_json=as_json, quiet=quiet)


def _report(ctx: click.Context, found: list[Finding], *, as_json: bool, quiet: bool) -> None:
    if as_json:
        write_json([msgspec.to_builtins(each) for each in found])
    elif not quiet:
        for each in found:
            following = f" (next: {each.fix})" if each.fix else ""
            said = f"{each.where}: {each.what}{following}"
            write_verdict(each.level, _COLOURS[each.level], said)
    ctx.exit(FOUND_PROBLEMS if any(x.level in ("warning", "error") for x in found) else 0)


def _everything(store_url: str | None) -> list[Finding]:
    config = find_gc_file()
    return [
        *(_check_environment() if config is None else _check_config(config)),
        *(
            each
            for url in addresses_of(store_url)
            for each in _check_store(url, is_wanted=store_url is not None)
        ),
        *check(),
    ]


def _one(what: str, *, fix: bool) -> list[Finding]:
    if what in ("agents", "install"):
        return check()
    if what == "adapters":
        return [_check_adapter(framework) for framework in FRAMEWORKS]
    url = _store_url_of(what)
    if url is not None:
        return _check_store(url, is_wanted=True)
    path = Path(what)
    if path.suffix == ".json" and path.parent.name in (".ctxgc", ".jaato"):
        return _check_config(path)
    return check_history(find_session(what, only_here=fix), fix=fix)


# -- Adapters


def _check_adapter(framework: Framework) -> Finding:
    here, tested = framework.installed(), framework.tested
    where = framework.name
    if here is None:
        said = f"{framework.package} is not installed; tested with {tested}"
        return Finding(level="info", where=where, what=said)
    try:
        importlib.import_module(framework.adapter)
    except ImportError as error:
        said = f"{framework.package} {here} does not work with {framework.adapter}: {error}"
        fix = f"pip install '{framework.package}=={tested}'"
        return Finding(level="error", where=where, what=said, fix=fix)
    said = f"{framework.package} {here}, {framework.adapter} loads"
    return Finding(
        level="ok", where=where, what=said if here == tested else f"{said}; tested with {tested}"
    )


# -- Histories


_MOST_SHOWN = 20


def check_history(path: Path, *, fix: bool) -> list[Finding]:
    """Return what is wrong with the window of a transcript; with `fix` it is repaired.

    Raises:
        TranscriptError: nothing of the file can be read.
        TranscriptBusyError: it cannot be repaired while its agent writes it.
    """
    where = path.name
    damage = [_damaged(where, each) for each in damaged_lines(path)]
    try:
        file = open_writable(path)
    except TranscriptError as error:
        if not damage:
            raise
        return [*damage, Finding(level="error", where=where, what=error.message, fix=error.hint)]
    broken = list(_broken(file, where))
    if fix and (broken or any(each.level == "warning" for each in damage)):
        return _fixed(path, where)
    if not broken:
        said = f"{file.kind}, {count(len(file.entries), 'message')} in the window, no rule broken"
        sound = Finding(level="ok", where=where, what=said)
        is_lost = any(each.level == "warning" for each in damage)
        return [*damage, sound, *([_repairable(path)] if is_lost else ())]
    return [*damage, *broken, _repairable(path)]


def _repairable(path: Path) -> Finding:
    fix = f"ctxgc unbrick {path}"
    return Finding(level="info", where=path.name, what="it can be repaired", fix=fix)


def _damaged(where: str, damage: Damage) -> Finding:
    return Finding(
        level="warning" if damage.is_lost else "info",
        where=f"{where} line {damage.line}",
        what=f"{damage.what}; skipped" if damage.is_lost else damage.what,
    )


def _broken(file: Writable, where: str) -> Iterator[Finding]:
    found = list(broken_rules(file))
    for each in found[:_MOST_SHOWN]:
        place = f"{where} line {each.line}" if each.line else f"{where} message {each.index}"
        yield Finding(level="error", where=place, what=each.text, fix=each.fix)
    if len(found) > _MOST_SHOWN:
        rest = f"... and {len(found) - _MOST_SHOWN} more"
        yield Finding(level="error", where=where, what=rest)


def _fixed(path: Path, where: str) -> list[Finding]:
    seen = check_still(path)
    raw = path.read_bytes()
    repaired = repair_transcript(path)
    if not (repaired.dropped or repaired.fixes or repaired.shapeless):
        what = "its damage cannot be dropped: it is one JSON value, not lines"
        return [Finding(level="error", where=where, what=what, fix="correct it by hand")]
    if repaired.data is None:
        what = "no message would be left: nothing was changed"
        return [Finding(level="error", where=where, what=what, fix="correct it by hand")]
    backup = write_in_place(path, raw, repaired.data, seen)
    shapeless = repaired.shapeless
    said = [f"dropped: {count(shapeless, 'message')} of no valid shape"] if shapeless else []
    lines = ", ".join(map(str, repaired.dropped[:_MOST_SHOWN]))
    if repaired.dropped:
        said.append(f"dropped: {count(len(repaired.dropped), 'damaged line')} ({lines})")
    done = [Finding(level="ok", where=where, what=what) for what in (*said, *repaired.fixes)]
    kept = f"the original is {backup.original}"
    return [
        *done,
        Finding(level="ok", where=where, what=kept, fix=f"ctxgc undo {path} restores it"),
    ]


# -- Stores and configurations


_SQLITE = b"SQLite format 3\0"


def _store_url_of(text: str) -> str | None:
    """Return the address of the store that a text names; None if it does not name one."""
    scheme, colon, _ = text.partition(":")
    if colon and scheme in SCHEMES and scheme != "memory":
        return text
    path = Path(text)
    if not path.is_file():
        return None
    with path.open("rb") as file:
        head = file.read(4096)
    if head.startswith(_SQLITE):
        return f"sqlite:{text}"
    is_json_store = re.match(rb'\s*\{.{0,200}?"segments"\s*:', head, re.DOTALL)
    return f"json:{text}" if is_json_store else None


def _check_store(url: str, *, is_wanted: bool) -> list[Finding]:
    """Return what is wrong in a store: sessions, live handles, checkpoints. Nothing is changed.

    Opening a damaged file rescues what it still holds, as in every command.
    """
    file = file_of(url)
    if file is not None and not file.exists():
        missing = "there is no store"
        if is_wanted:
            return [Finding(level="error", where=url, what=missing, fix="name another store")]
        return [Finding(level="ok", where=url, what=f"{missing} yet")]
    try:
        with command_store(url) as store:
            reports = [
                Finding(
                    level="warning", where=store.url, what=f"repaired on opening: {each.message}"
                )
                for each in store.reports
            ]
            sessions = [info.session_id for info in store.sessions()]
            found = [each for name in sessions for each in _session(store, name)]
            said = f"{count(len(sessions), 'session')}, every handle resolves"
            fine = [] if found else [Finding(level="ok", where=store.url, what=said)]
            return [*reports, *found, *fine]
    except CtxgcError as error:
        return [Finding(level="error", where=url, what=error.message, fix=error.hint)]


def _check_config(path: Path) -> list[Finding]:
    """Return what is wrong in a configuration file."""
    if not path.is_file():
        return [Finding(level="error", where=str(path), what="there is no file")]
    found = explain_file(path)
    problems = [*found.problems, *plugin_problem(path)]
    again = "ctxgc config check explains every key"
    mistakes = [Finding(level="error", where=str(path), what=p, fix=again) for p in problems]
    warnings = [Finding(level="warning", where=str(path), what=w) for w in found.warnings]
    fine = Finding(level="ok", where=str(path), what=f"uses {found.plugin}")
    return [*mistakes, *warnings] or [fine]


def _check_environment() -> list[Finding]:
    """Return what is wrong with the environment variables, where there is no configuration file."""
    where = "environment"
    strange = [
        Finding(level="warning", where=where, what=said, fix="ctxgc config schema lists the keys")
        for said in environment_warnings()
    ]
    try:
        effective(None)
    except ConfigError as error:
        return [*strange, Finding(level="error", where=where, what=error.message, fix=error.hint)]
    fine = Finding(level="ok", where="configuration", what="no file here: using the defaults")
    return [*strange, fine]


def _session(store: Store, name: str) -> Iterator[Finding]:
    where = f"session {name}"
    try:
        yield from _handles(store, name, where)
        yield from _view(store, name, where)
    except StoreBusyError as error:
        yield Finding(level="warning", where=where, what=error.message, fix=error.hint)
    except (CtxgcError, KeyError, TypeError, ValueError) as error:
        said = error.message if isinstance(error, CtxgcError) else f"cannot be opened: {error!r}"
        yield Finding(level="error", where=where, what=said)
    for key, _ in store.load(name, "checkpoints"):
        why = damage(store, name, key)
        # Its session may have dropped it meanwhile.
        if why is not None and store.get(name, "checkpoints", key) is not None:
            hint = "earlier checkpoints can still be restored"
            yield Finding(level="error", where=f"{where}, checkpoint {key}", what=why, fix=hint)


def _handles(store: Store, name: str, where: str) -> Iterator[Finding]:
    for handle in lost_handles(store, name):
        said = f"a tombstone names {handle}, which no segment has"
        yield Finding(level="error", where=where, what=said, fix="restore a checkpoint")


def _view(store: Store, name: str, where: str) -> Iterator[Finding]:
    """Check that the provider would accept the view of a session, on a copy."""
    if store.get(name, "state", "session") is None:
        return
    history = open_stored(copy_in_memory(store, name), name, utc_now()).history
    for each in validate(history, history[0].format, complete=False) if history else ():
        yield Finding(
            level="error", where=f"{where}, message {each.index}", what=each.text, fix=each.fix
        )
