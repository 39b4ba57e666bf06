"""Installing ctxgc into a coding agent, and taking it out again without a trace."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import unified_diff
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ctxgc.agents.compaction import CHECKPOINTS
from ctxgc.agents.events import AGENTS, LOG_NAME, STORE_NAME
from ctxgc.agents.targets import (
    NO_SERVER,
    SERVER_HINT,
    Commands,
    ConfigTarget,
    Places,
    Scope,
    can_serve,
    targets_of,
)
from ctxgc.config import unknown_key
from ctxgc.errors import ConfigError, StoreBusyError, StoreError
from ctxgc.files import os_errors, remove, write_atomic
from ctxgc.session import inbox_of

# -- A change of one file of others: what it holds before and after, written so that all or none a


@dataclass(frozen=True, slots=True)
class FileEdit:
    """A file before and after; None where there is no file."""

    path: Path
    before: bytes | None
    after: bytes | None

    @property
    def verb(self) -> str:
        """What happens to the file, in one word."""
        if self.before is None:
            return "create"
        return "remove" if self.after is None else "change"

    def diff(self) -> str:
        """Return the change as a unified diff."""
        old, new = (_lines(data) for data in (self.before, self.after))
        return "\n".join(unified_diff(old, new, str(self.path), str(self.path), lineterm="", n=1))


def read_file(path: Path) -> bytes | None:
    """Return what a file holds; None if it is not there.

    Raises:
        StoreError: it cannot be read.
    """
    with os_errors(path, "read"):
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return None


def apply_changes(changes: Sequence[FileEdit]) -> None:
    """Make all changes; if one fails, those made before are taken back.

    Raises:
        StoreBusyError: the agent or somebody else changed a file meanwhile.
        StoreError: a file cannot be written.
    """
    done: list[FileEdit] = []
    try:
        for change in changes:
            check_unchanged([change])
            done.append(change)
            _write(change.path, change.after)
    except StoreError:
        for change in done:
            with suppress(StoreError):
                _write(change.path, change.before)
        raise


def check_unchanged(changes: Sequence[FileEdit]) -> None:
    """Make sure that files are what they were when the changes were made up.

    Raises:
        StoreBusyError: one of them is not.
    """
    for change in changes:
        if read_file(change.path) != change.before:
            raise StoreBusyError(
                f"{change.path} was changed by somebody else meanwhile",
                hint="call again; nothing was changed",
                path=str(change.path),
            )


def _write(path: Path, data: bytes | None) -> None:
    """Write a file in place of another, through a link and with the same permissions."""
    real = path.resolve()
    if data is None:
        remove(real)
        return
    mode = real.stat().st_mode & 0o777 if real.exists() else None
    write_atomic(real, data)
    if mode is not None:
        with os_errors(real, "set the permissions of"):
            real.chmod(mode)


def _lines(data: bytes | None) -> list[str]:
    return (data or b"").decode("utf-8", "replace").splitlines()


# -- The receipt of an installation: what each file was before, so that uninstalling leaves no tra


FOLDER = "installs"


class FileReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """One file: its bytes before (None when it was not there), and the digest of what was written."""

    path: str
    before: str | None
    after: str

    @property
    def bytes_before(self) -> bytes | None:
        """What the file held before the installation."""
        return None if self.before is None else base64.b64decode(self.before)


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """An installation: the agent, its files, and the directories that were made for it."""

    agent: str
    store: str | None = None
    files: list[FileReceipt] = []
    directories: list[str] = []

    def file(self, path: Path) -> FileReceipt | None:
        """Return the receipt of a file."""
        return next((each for each in self.files if each.path == str(path)), None)


def digest(data: bytes) -> str:
    """Return what tells whether a file is still what was written."""
    return sha256(data).hexdigest()


def packed(data: bytes | None) -> str | None:
    """Return bytes as a receipt holds them."""
    return None if data is None else base64.b64encode(data).decode()


def receipt_path(home: Path, agent: str) -> Path:
    """Return where the receipt of an agent's installation lies."""
    return home / FOLDER / f"{agent}.json"


def read_receipt(home: Path, agent: str) -> Receipt | None:
    """Return the receipt of an installation; None when there is none.

    Raises:
        ConfigError: it is damaged.
    """
    path = receipt_path(home, agent)
    try:
        receipt = msgspec.json.decode(path.read_bytes(), type=Receipt)
        for file in receipt.files:
            _ = file.bytes_before
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, msgspec.MsgspecError, binascii.Error, ValueError) as error:
        raise ConfigError(
            f"the receipt {path} cannot be read: {error}",
            hint="remove it; uninstalling then takes out only our own entries",
            path=str(path),
        ) from None
    return receipt


def write_receipt(home: Path, receipt: Receipt) -> None:
    """Write a receipt, durably."""
    data = msgspec.json.format(msgspec.json.encode(receipt), indent=2)
    write_atomic(receipt_path(home, receipt.agent), data)


def drop_receipt(home: Path, agent: str) -> None:
    """Remove a receipt."""
    remove(receipt_path(home, agent))


def installed_agents(home: Path) -> list[str]:
    """Return the agents with a receipt in a folder of ours."""
    return sorted(path.stem for path in (home / FOLDER).glob("*.json"))


# -- What an installation leaves behind in time: logs, checkpoints, the stash; and how it goes


_OURS = (LOG_NAME, STORE_NAME, CHECKPOINTS, FOLDER)


def remove_home(home: Path) -> None:
    """Remove our own folder; what in it is not ours stays, and the folder with it."""
    if not home.is_dir():
        return
    for path in sorted(home.iterdir()):
        if path.name.removeprefix(".").startswith(_OURS):
            _remove(path)
    with suppress(OSError):
        home.rmdir()


def remove_directories(directories: Iterable[str]) -> None:
    """Remove directories that were made for an installation, if nothing is in them."""
    for path in sorted(map(Path, directories), key=lambda each: -len(each.parts)):
        with suppress(OSError):
            path.rmdir()


def _remove(path: Path) -> None:
    if not path.is_dir() or path.is_symlink():
        remove(path)
        return
    for each in sorted(path.iterdir()):
        _remove(each)
    with suppress(OSError):
        path.rmdir()


# -- Which stash an installed agent recalls from, wherever it runs


def stash_of(agent: str, project: Path) -> str | None:
    """Return the address of the store that the MCP server of an agent serves.

    An installation in the project goes before the user's own; None when there is neither.

    Raises:
        ConfigError: the receipt of the installation is damaged.
    """
    scopes: tuple[Scope, ...] = ("project", "user")
    for scope in scopes:
        home = Places(scope, project).home
        receipt = read_receipt(home, agent)
        if receipt is not None:
            return Commands(agent, home, receipt.store).store_url
    return None


def anchored(url: str) -> str:
    """Return the address of a store with the path of its file made absolute: agents run in many folders."""
    scheme, _, rest = url.partition(":")
    path = rest.removeprefix("//")
    if scheme not in ("json", "sqlite") or not path:
        return url
    return f"{scheme}:{Path(path).expanduser().absolute()}"


# -- Installing ctxgc into a coding agent, and taking it out again without a trace


def install(
    agent: str,
    *,
    scope: Scope = "user",
    project: Path | None = None,
    store: str | None = None,
    dry_run: bool = False,
) -> list[FileEdit]:
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
) -> list[FileEdit]:
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


def _added(target: ConfigTarget) -> FileEdit:
    before = read_file(target.path)
    return FileEdit(target.path, before, target.add(_text(target, before)).encode())


def _removed(target: ConfigTarget, known: Receipt | None) -> FileEdit:
    now = read_file(target.path)
    receipt = known.file(target.path) if known is not None else None
    if now is None:
        return FileEdit(target.path, None, None)
    if receipt is not None and digest(now) == receipt.after:
        return FileEdit(target.path, now, receipt.bytes_before)
    was = receipt.bytes_before if receipt is not None else None
    rest = target.remove(_text(target, now), _text(target, was)).encode()
    is_empty = was is None and receipt is not None and rest.strip() in (b"", b"{}")
    return FileEdit(target.path, now, None if is_empty else rest)


def _receipt(
    agent: str,
    store: str | None,
    places: Places,
    known: Receipt | None,
    made: Sequence[tuple[ConfigTarget, FileEdit]],
) -> Receipt:
    files = [_file_receipt(target, change, known) for target, change in made]
    folders = [receipt_path(places.home, agent).parent, *(t.path.parent for t, _ in made)]
    missing = {str(each) for f in folders for each in (f, *f.parents) if not each.exists()}
    before = known.directories if known is not None else []
    return Receipt(agent=agent, store=store, files=files, directories=sorted({*before, *missing}))


def _file_receipt(target: ConfigTarget, change: FileEdit, known: Receipt | None) -> FileReceipt:
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


def _text(target: ConfigTarget, data: bytes | None) -> str:
    try:
        return (data or b"").decode()
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{target.path} is no UTF-8: {error.reason} at byte {error.start}",
            hint="correct it by hand, then call again",
            path=str(target.path),
        ) from None
