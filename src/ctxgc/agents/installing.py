"""Installing ctxgc into a coding agent, and taking it out again without a trace."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from ctxgc.agents.change import Change, apply_changes, check_unchanged, read_file
from ctxgc.agents.commands import NO_SERVER, SERVER_HINT, Commands, can_serve
from ctxgc.agents.leftovers import remove_directories, remove_home
from ctxgc.agents.places import Places, Scope
from ctxgc.agents.receipt import (
    FileReceipt,
    Receipt,
    digest,
    drop_receipt,
    installed_agents,
    packed,
    read_receipt,
    receipt_path,
    write_receipt,
)
from ctxgc.agents.settings import AGENTS, STORE_NAME
from ctxgc.agents.stash import anchored
from ctxgc.agents.target import Target
from ctxgc.agents.targets import targets_of
from ctxgc.config.keys import unknown_key
from ctxgc.errors import ConfigError
from ctxgc.stores.inbox import inbox_of


def install(
    agent: str,
    *,
    scope: Scope = "user",
    project: Path | None = None,
    store: str | None = None,
    dry_run: bool = False,
) -> list[Change]:
    """Put ctxgc into an agent's configuration and return what changed; nothing if it is there already.

    Args:
        agent: claude-code, codex, cursor or vscode.
        scope: for the user everywhere, or for one project.
        project: the folder of the project; the current one if none is named.
        store: the stash; by default one beside our logs.
        dry_run: whether to return the changes without making them.

    Raises:
        ConfigError: the agent is not known, a file of it is damaged, or the server cannot run here;
            nothing was written.
        StoreBusyError: the agent, or a second installation, changed a file at the same moment.
        StoreError: a file cannot be written; those written before are as they were.
    """
    places = _places(agent, scope, project)
    if not can_serve():
        raise ConfigError(NO_SERVER, hint=SERVER_HINT, field="agent")
    if store is not None:
        inbox_of(store)  # a store that others cannot open is refused now
        store = anchored(store)
    targets = targets_of(agent, places, Commands(agent, places.home, store))
    known = read_receipt(places.home, agent)
    changes = [_added(target) for target in targets]
    changed = [change for change in changes if change.before != change.after]
    if changed and not dry_run:
        receipt = _receipt(agent, store, places, known, list(zip(targets, changes, strict=True)))
        # Before the receipt, too: one that took our own entries for the user's would never let them go.
        check_unchanged(changes)
        write_receipt(places.home, receipt)
        apply_changes(changed)
    return changed


def uninstall(
    agent: str,
    *,
    scope: Scope = "user",
    project: Path | None = None,
    keep_stash: bool = False,
    dry_run: bool = False,
) -> list[Change]:
    """Take ctxgc out of an agent's configuration and return what changed.

    A file that nobody touched since is again what it was, byte for byte; from one that was changed,
    only our entries go. With the last agent our own folder goes too, stash and all, unless
    `keep_stash`; a store that was named at the installation is never removed.

    Raises:
        ConfigError: the agent is not known, or a file is damaged; nothing was written.
        StoreError: a file cannot be written.
    """
    places = _places(agent, scope, project)
    known = read_receipt(places.home, agent)
    targets = targets_of(agent, places, Commands(agent, places.home))
    changes = [_removed(target, known) for target in targets]
    changed = [change for change in changes if change.before != change.after]
    if not dry_run:
        apply_changes(changed)
        _forget(places.home, known, keep_stash=keep_stash)
    return changed


def stash_that_goes(
    agent: str, *, scope: Scope = "user", project: Path | None = None
) -> Path | None:
    """Return the stash that goes with an agent; None while others use it, or if there is none."""
    home = _places(agent, scope, project).home
    stash = home / STORE_NAME
    is_last = all(other == agent for other in installed_agents(home))
    return stash if is_last and stash.exists() else None


def _forget(home: Path, known: Receipt | None, *, keep_stash: bool) -> None:
    """Remove a receipt and what was made for it; what other agents still use becomes theirs."""
    if known is not None:
        drop_receipt(home, known.agent)
    others = installed_agents(home)
    if not others and not keep_stash:
        remove_home(home)
    made = known.directories if known is not None else []
    remove_directories(made)
    heir = read_receipt(home, others[0]) if others else None
    if heir is not None:
        left = sorted({*heir.directories, *(each for each in made if Path(each).exists())})
        write_receipt(home, replace(heir, directories=left))


def _places(agent: str, scope: Scope, project: Path | None) -> Places:
    if agent not in AGENTS:
        raise unknown_key(agent, AGENTS, "agent")
    return Places(scope, (project or Path.cwd()).absolute())


def _added(target: Target) -> Change:
    before = read_file(target.path)
    return Change(target.path, before, target.add(_text(target, before)).encode())


def _removed(target: Target, known: Receipt | None) -> Change:
    now = read_file(target.path)
    receipt = known.file(target.path) if known is not None else None
    if now is None:
        return Change(target.path, None, None)
    if receipt is not None and digest(now) == receipt.after:
        return Change(target.path, now, receipt.bytes_before)
    was = receipt.bytes_before if receipt is not None else None
    rest = target.remove(_text(target, now), _text(target, was)).encode()
    is_empty = was is None and receipt is not None and rest.strip() in (b"", b"{}")
    return Change(target.path, now, None if is_empty else rest)


def _receipt(
    agent: str,
    store: str | None,
    places: Places,
    known: Receipt | None,
    made: Sequence[tuple[Target, Change]],
) -> Receipt:
    files = [_file_receipt(target, change, known) for target, change in made]
    folders = [receipt_path(places.home, agent).parent, *(t.path.parent for t, _ in made)]
    missing = {str(each) for f in folders for each in (f, *f.parents) if not each.exists()}
    before = known.directories if known is not None else []
    return Receipt(agent=agent, store=store, files=files, directories=sorted({*before, *missing}))


def _file_receipt(target: Target, change: Change, known: Receipt | None) -> FileReceipt:
    """Return what a file was before the first installation, as far as that can still be known."""
    earlier = known.file(target.path) if known is not None else None
    before = change.before
    if earlier is not None and before is not None:
        before = (
            earlier.bytes_before
            if digest(before) == earlier.after
            else target.remove(_text(target, before), "").encode()
        )
    after = digest(change.after) if change.after is not None else ""
    return FileReceipt(path=str(target.path), before=packed(before), after=after)


def _text(target: Target, data: bytes | None) -> str:
    try:
        return (data or b"").decode()
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{target.path} is no UTF-8: {error.reason} at byte {error.start}",
            hint="correct it by hand, then call again",
            path=str(target.path),
        ) from None
