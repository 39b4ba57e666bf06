"""Where an agent keeps its configuration, for one user or for one project."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ctxgc.agents.settings import default_home

Scope = Literal["user", "project"]


@dataclass(frozen=True, slots=True)
class Places:
    """The folders that an installation writes to.

    Attributes:
        scope: whether it serves the user everywhere, or one project.
        project: the folder of the project; used by the scope `project` only.
    """

    scope: Scope
    project: Path

    @property
    def home(self) -> Path:
        """Our own folder: receipts, logs, checkpoints, the stash."""
        return self.project / ".ctxgc" / "agents" if self.in_project else Path(default_home())

    @property
    def in_project(self) -> bool:
        """Whether the installation is for one project."""
        return self.scope == "project"

    @property
    def claude_servers(self) -> Path:
        """Where Claude Code lists MCP servers."""
        if self.in_project:
            return self.project / ".mcp.json"
        return (_folder("CLAUDE_CONFIG_DIR") or Path.home()) / ".claude.json"

    @property
    def claude_settings(self) -> Path:
        """Where Claude Code lists hooks, permissions and the status line."""
        folder = None if self.in_project else _folder("CLAUDE_CONFIG_DIR")
        base = self.project if self.in_project else Path.home()
        return (folder or base / ".claude") / "settings.json"

    @property
    def codex(self) -> Path:
        """The folder of Codex."""
        if self.in_project:
            return self.project / ".codex"
        return _folder("CODEX_HOME") or Path.home() / ".codex"

    @property
    def cursor(self) -> Path:
        """Where Cursor lists MCP servers."""
        return (self.project if self.in_project else Path.home()) / ".cursor" / "mcp.json"

    @property
    def vscode(self) -> Path:
        """Where VS Code lists MCP servers."""
        if self.in_project:
            return self.project / ".vscode" / "mcp.json"
        return _vscode_profile() / "mcp.json"


def _folder(variable: str) -> Path | None:
    said = os.environ.get(variable)
    return Path(said) if said else None


def _vscode_profile() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "Code" / "User"
    base = _folder("XDG_CONFIG_HOME") or Path.home() / ".config"
    return base / "Code" / "User"
