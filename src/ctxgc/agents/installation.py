"""ctxgc installed into a coding agent, and removed again without a trace."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import unified_diff
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

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
from ctxgc.agents.checkpoints import CHECKPOINTS
from ctxgc.agents.events import AGENTS, LOG_NAME
from ctxgc.config import unknown_key
from ctxgc.errors import ConfigError, StoreBusyError, StoreError
from ctxgc.files import os_errors, remove, write_atomic
from ctxgc.places import RUNNING, STORE_NAME, user_store
from ctxgc.session import file_of, inbox_of

# -- Edits of configuration files, all or none


@dataclass(frozen=True, slots=True)
class FileEdit:
    """A file before and after; None if there is no file.

    `left_alone` names settings of ours that the user has set to something else, and keeps.
    """

    path: Path
    before: bytes | None
    after: bytes | None
    left_alone: Sequence[str] = ()

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
    """Return the content of a file; None if there is none.

    Raises:
        StoreError: it cannot be read.
    """
    with os_errors(path, "read"):
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return None


def apply_edits(edits: Sequence[FileEdit]) -> None:
    """Make all edits; if one fails, undo those made before.

    Raises:
        StoreBusyError: another program changed a file meanwhile.
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
    """Check that files are what they were when the edits were computed.

    Raises:
        StoreBusyError: one of them is not.
    """
    for edit in edits:
        if read_file(edit.path) != edit.before:
            raise StoreBusyError(
                f"{edit.path} was changed by another program meanwhile",
                hint="try again; nothing was changed",
                path=str(edit.path),
            )


def _write(path: Path, data: bytes | None) -> None:
    """Replace a file, through a link and with the same permissions."""
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


# -- Receipts: what each file was before the installation


FOLDER = "installs"


class FileReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """One file: its bytes before (None if there was none), and the digest of what was written."""

    path: str
    before: str | None
    after: str

    @property
    def bytes_before(self) -> bytes | None:
        """What the file held before the installation."""
        return None if self.before is None else base64.b64decode(self.before)


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """An installation: the agent, its files, and the directories that were created for it."""

    agent: str
    store: str | None = None
    files: list[FileReceipt] = []
    directories: list[str] = []

    def file(self, path: Path) -> FileReceipt | None:
        """Return the receipt of a file."""
        return next((each for each in self.files if each.path == str(path)), None)


def _digest(data: bytes) -> str:
    """Return the digest of the content of a file."""
    return sha256(data).hexdigest()


def _packed(data: bytes | None) -> str | None:
    """Return bytes as a receipt holds them."""
    return None if data is None else base64.b64encode(data).decode()


def _receipt_path(home: Path, agent: str) -> Path:
    """Return the path of the receipt of an agent's installation."""
    return home / FOLDER / f"{agent}.json"


def read_receipt(home: Path, agent: str) -> Receipt | None:
    """Return the receipt of an installation; None if there is none.

    Raises:
        ConfigError: it is damaged.
    """
    path = _receipt_path(home, agent)
    try:
        receipt = msgspec.json.decode(path.read_bytes(), type=Receipt)
        for file in receipt.files:
            _ = file.bytes_before
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, msgspec.MsgspecError, binascii.Error, ValueError) as error:
        raise ConfigError(
            f"the receipt {path} cannot be read: {error}",
            hint="delete it; uninstalling then removes only our own entries",
            path=str(path),
        ) from None
    return receipt


def _write_receipt(home: Path, receipt: Receipt) -> None:
    """Write a receipt, durably."""
    data = msgspec.json.format(msgspec.json.encode(receipt), indent=2)
    write_atomic(_receipt_path(home, receipt.agent), data)


def _drop_receipt(home: Path, agent: str) -> None:
    """Remove a receipt."""
    remove(_receipt_path(home, agent))


def installed_agents(home: Path) -> list[str]:
    """Return the agents with a receipt in our folder."""
    return sorted(path.stem for path in (home / FOLDER).glob("*.json"))


# -- Cleanup: logs, checkpoints and the stash


_OURS = (LOG_NAME, STORE_NAME, CHECKPOINTS, FOLDER, RUNNING)


def _remove_home(home: Path) -> None:
    """Remove our folder, unless it holds something that is not ours."""
    if not home.is_dir():
        return
    for path in sorted(home.iterdir()):
        if path.name.removeprefix(".").startswith(_OURS):
            _remove(path)
    with suppress(OSError):
        home.rmdir()


def _remove_directories(directories: Iterable[str]) -> None:
    """Remove directories that were created for an installation, if they are empty."""
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


# -- The stash of an installed agent


def stash_url_of(agent: str, project: Path) -> str | None:
    """Return the address of the store that the MCP server of an agent serves; None if it has no server.

    It is what the agent's own configuration says, whoever wrote it there: first that of the project, then
    the user's.

    Raises:
        ConfigError: a file of the agent is damaged.
    """
    scopes: tuple[Scope, ...] = ("project", "user")
    for scope in scopes:
        paths = AgentPaths(scope, project)
        for config in config_files(agent, paths, AgentCommands(agent, paths.home)):
            text = _text(config, read_file(config.path))
            # What `claude mcp add` writes for one project only.
            entry = config.server(text, ("projects", str(project))) or config.server(text)
            if isinstance(entry, dict):
                return _served(entry)
    return None


def _served(entry: dict[str, Any]) -> str:
    """Return the address of the store that a server is started with."""
    words = entry.get("args")
    words = [str(word) for word in words] if isinstance(words, list) else []
    named = next((value for name, value in pairwise(words) if name == "--store"), None)
    given = entry.get("env")
    said = given.get("CTXGC_STORE") if isinstance(given, dict) else None
    return named or said or user_store()


def absolute_url(url: str) -> str:
    """Return the address of a store with an absolute path, since agents run in many folders."""
    file = file_of(url)
    return url if file is None else f"{url.partition(':')[0]}:{file.expanduser().absolute()}"


# -- Install and uninstall


def install(
    agent: str,
    *,
    scope: Scope = "user",
    project: Path | None = None,
    store: str | None = None,
    dry_run: bool = False,
) -> list[FileEdit]:
    """Add ctxgc to an agent's configuration and return what changed; nothing if it is already there.

    Args:
        agent: claude-code, codex, cursor or vscode.
        scope: for the user, in all projects, or for one project.
        project: the folder of the project; by default the current one.
        store: the stash; by default the user's, which all agents and the commands share.
        dry_run: whether to return the edits without making them.

    Raises:
        ConfigError: the agent is unknown, one of its files is damaged, or the server cannot run here;
            nothing was written.
        StoreBusyError: another program changed a file meanwhile.
        StoreError: a file cannot be written; those written before are restored.
    """
    paths = _paths(agent, scope, project)
    if not can_serve():
        raise ConfigError(NO_SERVER, hint=SERVER_HINT, field="agent")
    if store is not None:
        inbox_of(store)  # refuse a store that other processes cannot open
        store = absolute_url(store)
    configs = config_files(agent, paths, AgentCommands(agent, paths.home, store))
    known = read_receipt(paths.home, agent)
    edits = [_added(config) for config in configs]
    edited = [edit for edit in edits if edit.before != edit.after]
    if edited and not dry_run:
        receipt = _receipt(agent, store, paths, known, list(zip(configs, edits, strict=True)))
        # Before the receipt, too: it must not take our own entries for the user's.
        check_unchanged(edits)
        _write_receipt(paths.home, receipt)
        apply_edits(edited)
    return edited


def uninstall(
    agent: str,
    *,
    scope: Scope = "user",
    project: Path | None = None,
    delete_stash: bool = False,
    dry_run: bool = False,
) -> list[FileEdit]:
    """Remove ctxgc from an agent's configuration and return what changed.

    A file that was not changed since is restored byte for byte; from one that was, only our entries
    are removed. With the last agent our own folder is removed too, unless it holds a stash: sessions that
    were pruned lead to it, so only `delete_stash` removes that. A store that was named at the installation
    is never removed.

    Raises:
        ConfigError: the agent is unknown, or a file is damaged; nothing was written.
        StoreError: a file cannot be written.
    """
    paths = _paths(agent, scope, project)
    known = read_receipt(paths.home, agent)
    configs = config_files(agent, paths, AgentCommands(agent, paths.home))
    edits = [_removed(config, known) for config in configs]
    edited = [edit for edit in edits if edit.before != edit.after]
    if not dry_run:
        apply_edits(edited)
        _forget(paths.home, known, delete_stash=delete_stash)
    return edited


def unused_stash(agent: str, *, scope: Scope = "user", project: Path | None = None) -> Path | None:
    """Return the stash that no agent uses without this one; None if others do, or there is none."""
    home = _paths(agent, scope, project).home
    is_last = all(other == agent for other in installed_agents(home))
    return home / STORE_NAME if is_last and _has_stash(home) else None


def _has_stash(home: Path) -> bool:
    """Tell whether anything was stashed in a folder: what hooks stash waits next to the store at first."""
    return any(home.glob(f"{STORE_NAME}*"))


def _forget(home: Path, known: Receipt | None, *, delete_stash: bool) -> None:
    """Remove a receipt and the directories created for it; those still in use pass to another agent."""
    if known is not None:
        _drop_receipt(home, known.agent)
    others = installed_agents(home)
    if not others and (delete_stash or not _has_stash(home)):
        _remove_home(home)
    made = known.directories if known is not None else []
    _remove_directories(made)
    heir = read_receipt(home, others[0]) if others else None
    if heir is not None:
        left = sorted({*heir.directories, *(each for each in made if Path(each).exists())})
        _write_receipt(home, replace(heir, directories=left))


def _paths(agent: str, scope: Scope, project: Path | None) -> AgentPaths:
    if agent not in AGENTS:
        raise unknown_key(agent, AGENTS, "agent")
    return AgentPaths(scope, (project or Path.cwd()).absolute())


def _added(config: ConfigFile) -> FileEdit:
    before = read_file(config.path)
    text = _text(config, before)
    return FileEdit(config.path, before, config.add(text).encode(), config.left_alone(text))


def _removed(config: ConfigFile, known: Receipt | None) -> FileEdit:
    now = read_file(config.path)
    receipt = known.file(config.path) if known is not None else None
    if now is None:
        return FileEdit(config.path, None, None)
    if receipt is not None and _digest(now) == receipt.after:
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
    folders = [_receipt_path(paths.home, agent).parent, *(t.path.parent for t, _ in made)]
    missing = {str(each) for f in folders for each in (f, *f.parents) if not each.exists()}
    before = known.directories if known is not None else []
    return Receipt(agent=agent, store=store, files=files, directories=sorted({*before, *missing}))


def _file_receipt(config: ConfigFile, edit: FileEdit, known: Receipt | None) -> FileReceipt:
    """Return what a file was before the first installation, as far as that is known."""
    earlier = known.file(config.path) if known is not None else None
    before = edit.before
    if earlier is not None and before is not None:
        before = (
            earlier.bytes_before
            if _digest(before) == earlier.after
            else config.remove(_text(config, before), "").encode()
        )
    after = _digest(edit.after) if edit.after is not None else ""
    return FileReceipt(path=str(config.path), before=_packed(before), after=after)


def _text(config: ConfigFile, data: bytes | None) -> str:
    try:
        return (data or b"").decode()
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{config.path} is not UTF-8: {error.reason} at byte {error.start}",
            hint="correct it by hand, then try again",
            path=str(config.path),
        ) from None
