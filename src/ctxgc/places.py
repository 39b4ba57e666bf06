"""Where ctxgc keeps what belongs to a user: the state folder, and in it the one store of coding agents.

Also where hooks note which session an agent runs, so that its MCP server finds it.

Hooks load this after every tool call, so it needs nothing but `os`.
"""

from __future__ import annotations

import os
import sys

STATE_VARIABLE = "CTXGC_STATE_HOME"
STORE_NAME = "stash.sqlite"
RUNNING = "running"


def state_folder() -> str:
    """Return the folder of the user's own files.

    `CTXGC_STATE_HOME` names it. Else it is `ctxgc` in `XDG_STATE_HOME`, by default `~/.local/state`; on
    macOS and Windows in the folder of the system for such files, unless the other is there already.
    """
    named = os.environ.get(STATE_VARIABLE)
    if named:
        return os.path.abspath(os.path.expanduser(named))  # noqa: PTH100, PTH111 (pathlib is slow to load)
    base = os.environ.get("XDG_STATE_HOME")
    if base:
        return os.path.join(base, "ctxgc")  # noqa: PTH118
    common = os.path.expanduser("~/.local/state/ctxgc")  # noqa: PTH111
    own = _folder_of_system(sys.platform)
    return own if own and not os.path.isdir(common) else common  # noqa: PTH112


def agents_folder() -> str:
    """Return the folder of coding agents: their store, checkpoints, log, and receipts of installations."""
    return os.path.join(state_folder(), "agents")  # noqa: PTH118


def user_store() -> str:
    """Return the address of the store in which every door keeps the sessions of coding agents."""
    return store_in(agents_folder())


def store_in(folder: str) -> str:
    """Return the address of the agents' store in a folder."""
    return f"sqlite:{os.path.join(folder, STORE_NAME)}"  # noqa: PTH118


def running_folder(store: str) -> str:
    """Return where hooks note which session an agent's process runs: next to the agents' store.

    Servers may have another environment than hooks, so its address says more than that. A store of another
    name is the user's own, and nothing of ours belongs next to it.
    """
    path = os.path.abspath(store.partition(":")[2])  # noqa: PTH100
    is_agents = os.path.basename(path) == STORE_NAME  # noqa: PTH119
    folder = os.path.dirname(path) if is_agents else agents_folder()  # noqa: PTH120
    return os.path.join(folder, RUNNING)  # noqa: PTH118


_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "fish", "ksh", "ash"})
_MOST_SHELLS = 8


def agent_process() -> int:
    """Return the process that started this one, shells left out: for hooks and servers it is the agent.

    Where the system does not tell what a process is, it is the one that started this one.
    """
    pid = os.getppid()
    for _ in range(_MOST_SHELLS):
        name, parent = _process(pid)
        if name not in _SHELLS or parent <= 1:
            return pid
        pid = parent
    return pid


def _process(pid: int) -> tuple[str, int]:
    """Return the name of a process and who started it; nothing where the system does not tell."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            said = file.read()
    except OSError:
        return "", 0
    name, _, rest = said.partition("(")[2].rpartition(")")
    return name, int(rest.split()[1])


def _folder_of_system(platform: str) -> str:
    if platform == "darwin":
        return os.path.expanduser("~/Library/Application Support/ctxgc")  # noqa: PTH111
    if platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~/AppData/Local")  # noqa: PTH111
        return os.path.join(base, "ctxgc")  # noqa: PTH118
    return ""
