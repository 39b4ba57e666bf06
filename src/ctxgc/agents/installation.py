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

from ctxgc.agents.agent_configs import (
    NO_SERVER,
    SERVER_HINT,
    AgentCommands,
    AgentPaths,
    ConfigFile,
    Scope,
    can_serve,
    config_files,
)
from ctxgc.agents.compaction import CHECKPOINTS
from ctxgc.agents.events import AGENTS, LOG_NAME, STORE_NAME
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
        """Return the edit as a unified diff."""
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


def apply_edits(edits: Sequence[FileEdit]) -> None:
    """Make all changes; if one fails, those made before are taken back.

    Raises:
        StoreBusyError: the agent or somebody else changed a file meanwhile.
        StoreError: a file cannot be written.
    """
    done: list[FileEdit] = []
    try:
        for edit in edits:
            check_unchanged([edit])
            done.append(edit)
            _write(edit.path, edit.after)
    except StoreError:
        for edit in done:
            with suppress(StoreError):
                _write(edit.path, edit.before)
        raise


def check_unchanged(edits: Sequence[FileEdit]) -> None:
    """Make sure that files are what they were when the edits were made up.

    Raises:
        StoreBusyError: one of them is not.
    """
    for edit in edits:
        if read_file(edit.path) != edit.before:
            raise StoreBusyError(
                f"{edit.path} was changed by somebody else meanwhile",
                hint="call again; nothing was changed",
                path=str(edit.path),
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


def stash_url_of(agent: str, project: Path) -> str | None:
    """Return the address of the store that the MCP server of an agent serves.

    An installation in the project goes before the user's own; None when there is neither.

    Raises:
        ConfigError: the receipt of the installation is damaged.
    """
    scopes: tuple[Scope, ...] = ("project", "user")
    for scope in scopes:
        home = AgentPaths(scope, project).home
        receipt = read_receipt(home, agent)
        if receipt is not None:
            return AgentCommands(agent, home, receipt.store).store_url
    return None


def absolute_url(url: str) -> str:
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
        dry_run: whether to return the edits without making them.

    Raises:
        ConfigError: the agent is not known, a file of it is damaged, or the server cannot run here;
            nothing was written.
        StoreBusyError: the agent, or a second installation, changed a file at the same moment.
        StoreError: a file cannot be written; those written before are as they were.
    """
    paths = _paths(agent, scope, project)
    if not can_serve():
        raise ConfigError(NO_SERVER, hint=SERVER_HINT, field="agent")
    if store is not None:
        inbox_of(store)  # a store that others cannot open is refused now
        store = absolute_url(store)
    configs = config_files(agent, paths, AgentCommands(agent, paths.home, store))
    known = read_receipt(paths.home, agent)
    edits = [_added(config) for config in configs]
    edited = [edit for edit in edits if edit.before != edit.after]
    if edited and not dry_run:
        receipt = _receipt(agent, store, paths, known, list(zip(configs, edits, strict=True)))
        # Before the receipt, too: one that took our own entries for the user's would never let them go.
        check_unchanged(edits)
        write_receipt(paths.home, receipt)
        apply_edits(edited)
    return edited


def uninstall(
    agent: str,
    *,
    scope: Scope = "user",
    project: Path | None = None,
    keep_stash: bool = False,
    dry_run: bool = False,
) -> list[FileEdit]:
    """Take ctxgc out of an agent's configuration and return what edited.

    A file that nobody touched since is again what it was, byte for byte; from one that was edited,
    only our entries go. With the last agent our own folder goes too, stash and all, unless
    `keep_stash`; a store that was named at the installation is never removed.

    Raises:
        ConfigError: the agent is not known, or a file is damaged; nothing was written.
        StoreError: a file cannot be written.
    """
    paths = _paths(agent, scope, project)
    known = read_receipt(paths.home, agent)
    configs = config_files(agent, paths, AgentCommands(agent, paths.home))
    edits = [_removed(config, known) for config in configs]
    edited = [edit for edit in edits if edit.before != edit.after]
    if not dry_run:
        apply_edits(edited)
        _forget(paths.home, known, keep_stash=keep_stash)
    return edited


def stash_to_remove(
    agent: str, *, scope: Scope = "user", project: Path | None = None
) -> Path | None:
    """Return the stash that goes with an agent; None while others use it, or if there is none."""
    home = _paths(agent, scope, project).home
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


def _paths(agent: str, scope: Scope, project: Path | None) -> AgentPaths:
    if agent not in AGENTS:
        raise unknown_key(agent, AGENTS, "agent")
    return AgentPaths(scope, (project or Path.cwd()).absolute())


def _added(config: ConfigFile) -> FileEdit:
    before = read_file(config.path)
    return FileEdit(config.path, before, config.add(_text(config, before)).encode())


def _removed(config: ConfigFile, known: Receipt | None) -> FileEdit:
    now = read_file(config.path)
    receipt = known.file(config.path) if known is not None else None
    if now is None:
        return FileEdit(config.path, None, None)
    if receipt is not None and digest(now) == receipt.after:
        return FileEdit(config.path, now, receipt.bytes_before)
    was = receipt.bytes_before if receipt is not None else None
    rest = config.remove(_text(config, now), _text(config, was)).encode()
    is_empty = was is None and receipt is not None and rest.strip() in (b"", b"{}")
    return FileEdit(config.path, now, None if is_empty else rest)


def _receipt(
    agent: str,
    store: str | None,
    paths: AgentPaths,
    known: Receipt | None,
    made: Sequence[tuple[ConfigFile, FileEdit]],
) -> Receipt:
    files = [_file_receipt(config, edit, known) for config, edit in made]
    folders = [receipt_path(paths.home, agent).parent, *(t.path.parent for t, _ in made)]
    missing = {str(each) for f in folders for each in (f, *f.parents) if not each.exists()}
    before = known.directories if known is not None else []
    return Receipt(agent=agent, store=store, files=files, directories=sorted({*before, *missing}))


def _file_receipt(config: ConfigFile, edit: FileEdit, known: Receipt | None) -> FileReceipt:
    """Return what a file was before the first installation, as far as that can still be known."""
    earlier = known.file(config.path) if known is not None else None
    before = edit.before
    if earlier is not None and before is not None:
        before = (
            earlier.bytes_before
            if digest(before) == earlier.after
            else config.remove(_text(config, before), "").encode()
        )
    after = digest(edit.after) if edit.after is not None else ""
    return FileReceipt(path=str(config.path), before=packed(before), after=after)


def _text(config: ConfigFile, data: bytes | None) -> str:
    try:
        return (data or b"").decode()
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{config.path} is no UTF-8: {error.reason} at byte {error.start}",
            hint="correct it by hand, then call again",
            path=str(config.path),
        ) from None
