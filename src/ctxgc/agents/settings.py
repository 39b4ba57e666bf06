"""What a hook is told on its command line: which agent calls, and where ctxgc keeps things."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

AGENTS = ("claude-code", "codex", "cursor", "vscode")
STORE_NAME = "stash.sqlite"
RECALL_TOOL = "mcp__ctxgc__context_recall"


class HookSettings(NamedTuple):
    """The words of a hook's command line, each with a default."""

    agent: str = "claude-code"
    home: str = ""
    store: str = ""
    recall: str = RECALL_TOOL

    @property
    def folder(self) -> str:
        """The folder for logs, checkpoints and the stash."""
        return self.home or default_home()

    @property
    def store_url(self) -> str:
        """The address of the stash."""
        return self.store or store_in(self.folder)


def default_home() -> str:
    """Return the folder of a user-wide installation."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")  # noqa: PTH111
    return os.path.join(state, "ctxgc", "agents")  # noqa: PTH118 (a hook need not load pathlib)


def store_in(home: str) -> str:
    """Return the address of the stash in a folder of ours."""
    return f"sqlite:{os.path.join(home, STORE_NAME)}"  # noqa: PTH118


def read_settings(words: Sequence[str]) -> HookSettings:
    """Return the settings that `--name value` pairs give; what is not known is passed over."""
    found = {name[2:]: value for name, value in pairwise(words) if name.startswith("--")}
    return HookSettings(**{k: v for k, v in found.items() if k in HookSettings._fields})
