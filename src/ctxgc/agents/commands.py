"""The commands that go into an agent's configuration.

They name this interpreter by its full path, so that they work whatever the agent's own `PATH` is, and run it
with `-P`: the folder that an agent works in must never be a place to import from.
"""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from ctxgc.agents.settings import RECALL_TOOL, store_in

HOOK_MODULE = "ctxgc.agents.hook"
SERVER_MODULE = "ctxgc.cli"
SERVER_NAME = "ctxgc"
NO_SERVER = "the MCP server cannot run here: the package mcp is missing"
SERVER_HINT = "pip install 'ctxgc[mcp]', or '.[mcp]' in a checkout"


def can_serve() -> bool:
    """Tell whether the interpreter that goes into the commands has what the MCP server needs."""
    return find_spec("mcp") is not None


@dataclass(frozen=True, slots=True)
class Commands:
    """What one agent runs: the MCP server and the hooks, on one stash."""

    agent: str
    home: Path
    store: str | None = None
    recall: str = RECALL_TOOL
    python: str = sys.executable

    @property
    def store_url(self) -> str:
        """The stash that server and hooks share."""
        return self.store or store_in(str(self.home))

    @property
    def server(self) -> list[str]:
        """The MCP server, program first."""
        return [self.python, "-P", "-m", SERVER_MODULE, "mcp", "--store", self.store_url]

    def hook(self, event: str) -> str:
        """Return the shell command that answers an event."""
        words = [self.python, "-P", "-m", HOOK_MODULE, event, "--agent", self.agent]
        words += ["--home", str(self.home)]
        words += ["--store", self.store] if self.store else []
        words += ["--recall", self.recall] if self.recall != RECALL_TOOL else []
        return shlex.join(words)


def is_our_hook(command: object) -> bool:
    """Tell whether a shell command is one of our hooks, of whichever version and interpreter."""
    return isinstance(command, str) and f" -m {HOOK_MODULE} " in f"{command} "
