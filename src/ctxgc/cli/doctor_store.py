"""The doctor for stores and configurations: handles that lead nowhere, seals that are broken."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from ctxgc.agents import Finding
from ctxgc.cli.checkpoint import damage
from ctxgc.cli.effective import effective, plugin_problem
from ctxgc.cli.stash_gc import open_session
from ctxgc.cli.stash_store import count, opened
from ctxgc.config import environment_warnings, explain_file
from ctxgc.core.tombstone import is_tombstone
from ctxgc.errors import ConfigError, CtxgcError, StoreBusyError
from ctxgc.stores import Store
from ctxgc.stores.copy import copy_session
from ctxgc.stores.memory import MemoryStore
from ctxgc.wire import validate

_SCHEMES = ("json", "sqlite", "postgresql", "postgres")
_HANDLE = re.compile(r"h-[a-z2-7]{16}")
_SQLITE = b"SQLite format 3\0"


def store_url_of(text: str) -> str | None:
    """Return the address of the store that a text names; None if it names none."""
    if text.partition(":")[0] in _SCHEMES and ":" in text:
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


def check_store(url: str, *, is_wanted: bool) -> list[Finding]:
    """Return what is wrong in a store: sessions, live handles, checkpoints. Nothing is changed.

    What a damaged file still holds is saved by opening it, as every command does.
    """
    path = Path(url.partition(":")[2].removeprefix("//"))
    if url.startswith(("json:", "sqlite:")) and not path.exists():
        missing = "no store is there"
        if is_wanted:
            return [Finding(level="error", where=url, what=missing, fix="name another")]
        return [Finding(level="ok", where=url, what=f"{missing} yet")]
    try:
        with opened(url) as store:
            reports = [
                Finding(
                    level="warning", where=store.url, what=f"repaired on opening: {each.message}"
                )
                for each in store.reports
            ]
            sessions = [info.session_id for info in store.sessions()]
            found = [each for name in sessions for each in _session(store, name)]
            said = f"{count(len(sessions), 'session')}, every handle leads somewhere"
            fine = [] if found else [Finding(level="ok", where=store.url, what=said)]
            return [*reports, *found, *fine]
    except CtxgcError as error:
        return [Finding(level="error", where=url, what=error.message, fix=error.hint)]


def check_config(path: Path) -> list[Finding]:
    """Return what is wrong in a configuration file."""
    if not path.is_file():
        return [Finding(level="error", where=str(path), what="no file is there")]
    found = explain_file(path)
    problems = [*found.problems, *plugin_problem(path)]
    again = "ctxgc config check explains every key"
    mistakes = [Finding(level="error", where=str(path), what=p, fix=again) for p in problems]
    warnings = [Finding(level="warning", where=str(path), what=w) for w in found.warnings]
    fine = Finding(level="ok", where=str(path), what=f"uses {found.plugin}")
    return [*mistakes, *warnings] or [fine]


def check_environment() -> list[Finding]:
    """Return what is wrong with the variables that set the configuration where no file does."""
    where = "environment"
    strange = [
        Finding(level="warning", where=where, what=said, fix="ctxgc config schema lists the keys")
        for said in environment_warnings()
    ]
    try:
        effective(None)
    except ConfigError as error:
        return [*strange, Finding(level="error", where=where, what=error.message, fix=error.hint)]
    fine = Finding(level="ok", where="configuration", what="no file here: the defaults count")
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
        # One that is not there any more was let go by its session meanwhile.
        if why is not None and store.get(name, "checkpoints", key) is not None:
            hint = "the checkpoints before it can still be restored"
            yield Finding(level="error", where=f"{where}, checkpoint {key}", what=why, fix=hint)


def _handles(store: Store, name: str, where: str) -> Iterator[Finding]:
    """Every tombstone in the view must name a handle that something answers to."""
    docs = [doc for _, doc in store.load(name, "segments")]
    live = {doc.get("handle") for doc in docs if doc.get("derived_from") is None}
    for doc in docs:
        text = str(doc.get("text", ""))
        if doc.get("tier") != "working" or not is_tombstone(text):
            continue
        for handle in _HANDLE.findall(text.partition("\n")[0]):
            if handle not in live and not _elsewhere(store, name, handle):
                said = f"a tombstone names {handle}, which nothing answers to"
                yield Finding(level="error", where=where, what=said, fix="restore a checkpoint")


def _elsewhere(store: Store, name: str, handle: str) -> bool:
    others = [info.session_id for info in store.sessions() if info.session_id != name]
    found = (doc for other in others for _, doc in store.load(other, "segments"))
    return any(doc.get("handle") == handle for doc in found)


def _view(store: Store, name: str, where: str) -> Iterator[Finding]:
    """The view of a session, opened on a copy, must be one that its provider takes."""
    if store.get(name, "state", "session") is None:
        return
    copy = MemoryStore()
    copy_session(store, copy, name)
    history = open_session(copy, name, datetime.now(UTC)).history
    for each in validate(history, history[0].format, complete=False) if history else ():
        yield Finding(
            level="error", where=f"{where}, message {each.index}", what=each.text, fix=each.fix
        )
