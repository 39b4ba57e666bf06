"""The configuration files of each agent, and the entries of ctxgc in them."""

from __future__ import annotations

import os
import shlex
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from ctxgc.agents import json_config, toml_config
from ctxgc.agents.events import MCP_RECALL_TOOL
from ctxgc.places import agents_folder, store_in, user_store

# -- The commands that an agent runs


HOOK_MODULE = "ctxgc.agents.hook"
_SERVER_MODULE = "ctxgc.cli"
SERVER_NAME = "ctxgc"
NO_SERVER = "the MCP server cannot run here: the package mcp is missing"
SERVER_HINT = "pip install 'ctxgc[mcp]', or '.[mcp]' in a checkout"


def can_serve() -> bool:
    """Return whether this interpreter has what the MCP server needs."""
    return find_spec("mcp") is not None


_STARTS = "startup|resume|clear|compact"
"""Every start of a session: its server asks which session it is."""


@dataclass(frozen=True, slots=True)
class AgentCommands:
    """What one agent runs: the MCP server and the hooks, on one stash; by default the user's."""

    agent: str
    home: Path
    store: str | None = None
    recall: str = MCP_RECALL_TOOL
    python: str = sys.executable

    @property
    def store_url(self) -> str:
        """The stash that server and hooks share."""
        return self.store or user_store()

    @property
    def server(self) -> list[str]:
        """The MCP server, program first."""
        words = [self.python, "-P", "-m", _SERVER_MODULE, "mcp", "--store", self.store_url]
        return [*words, "--agent", self.agent]

    def hook(self, event: str) -> str:
        """Return the shell command that answers an event."""
        words = [self.python, "-P", "-m", HOOK_MODULE, event, "--agent", self.agent]
        words += ["--home", str(self.home)]
        # Without it a hook takes the store in its home, as installations of earlier versions mean it.
        is_in_home = self.store_url == store_in(str(self.home))
        words += [] if is_in_home else ["--store", self.store_url]
        words += ["--recall", self.recall] if self.recall != MCP_RECALL_TOOL else []
        return shlex.join(words)


def _is_our_hook(command: object) -> bool:
    """Return whether a shell command is one of our hooks, of any version and interpreter."""
    return isinstance(command, str) and f" -m {HOOK_MODULE} " in f"{command} "


# -- The paths of an agent, for one user or one project


Scope = Literal["user", "project"]


@dataclass(frozen=True, slots=True)
class AgentPaths:
    """The paths that an installation writes to.

    Attributes:
        scope: whether it is for the user, in all projects, or for one project.
        project: the folder of the project; used by the scope `project` only.
    """

    scope: Scope
    project: Path

    @property
    def home(self) -> Path:
        """Our own folder: receipts, logs, checkpoints; the user's also holds the stash."""
        return self.project / ".ctxgc" / "agents" if self.in_project else Path(agents_folder())

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


# -- One configuration file


KeyPath = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ConfigFile(ABC):
    """One configuration file that an installation changes."""

    path: Path

    @abstractmethod
    def add(self, text: str) -> str:
        """Return the text with our entries; the same text if they are all there."""

    @abstractmethod
    def remove(self, text: str, before: str) -> str:
        """Return the text without our entries; `before` is what the file held before the installation."""

    @abstractmethod
    def server(self, text: str, more: KeyPath = ()) -> Any:
        """Return the entry of our server in a text, below `more` in it; None if there is none."""

    def left_alone(self, text: str) -> list[str]:  # noqa: ARG002
        """Return the names of settings that we would make, but that have a value of the user's."""
        return []

    @property
    def where(self) -> str:
        """How errors name the file."""
        return str(self.path)


@dataclass(frozen=True, slots=True)
class JsonConfigFile(ConfigFile):
    """A JSON file: members that are put, and items that are added to lists.

    Attributes:
        members: path -> value; a value of ours that is there is replaced.
        optional: path -> value; only put where nothing is.
        items: path of a list -> items of ours.
        ours: tells whether an item of a list, or an optional value, is ours.
    """

    members: dict[KeyPath, Any] = field(default_factory=dict)
    optional: dict[KeyPath, Any] = field(default_factory=dict)
    items: dict[KeyPath, list[Any]] = field(default_factory=dict)
    ours: Callable[[Any], bool] = lambda _: False

    def add(self, text: str) -> str:
        """Return the text with our entries."""
        value = json_config.parse(text, self.where)
        if self._is_complete(value):
            return text
        text = self._without_items(text)
        for path, member in self.members.items():
            text = json_config.put(text, path, member, self.where)
        for path, member in self.optional.items():
            there = _at(value, path)
            if there is None or self.ours(there):
                text = json_config.put(text, path, member, self.where)
        for path, items in self.items.items():
            for item in items:
                text = json_config.append(text, path, item, self.where)
        return text

    def left_alone(self, text: str) -> list[str]:
        """Return the names of settings that we would make, but that have a value of the user's."""
        value = json_config.parse(text, self.where)
        return [
            ".".join(map(str, path))
            for path in self.optional
            if not self._may_put(_at(value, path))
        ]

    def remove(self, text: str, before: str) -> str:
        """Return the text without our entries, and without what held only them."""
        rest = self._without_items(text)
        for path in self.members:
            rest = json_config.drop(rest, path, self.where)
        for path in self.optional:
            if self.ours(_at(json_config.parse(rest, self.where), path)):
                rest = json_config.drop(rest, path, self.where)
        if rest == text:
            return text
        known = json_config.parse(before, self.where)
        holders = (*(path[:-1] for path in (*self.members, *self.optional)), *self.items)
        for path in holders:
            rest = self._without_empty(rest, path, known)
        return rest

    def server(self, text: str, more: KeyPath = ()) -> Any:
        """Return the entry of our server."""
        value = json_config.parse(text, self.where)
        named = (path for path in self.members if path[-1] == SERVER_NAME)
        return next((_at(value, (*more, *path)) for path in named), None)

    def _is_complete(self, value: Any) -> bool:
        return (
            all(_at(value, path) == member for path, member in self.members.items())
            and all(
                (there := _at(value, path)) == member or not self._may_put(there)
                for path, member in self.optional.items()
            )
            and all(
                [i for i in _listed(_at(value, path)) if self.ours(i)] == items
                for path, items in self.items.items()
            )
        )

    def _may_put(self, there: Any) -> bool:
        return there is None or self.ours(there)

    def _without_items(self, text: str) -> str:
        for path in self.items:
            found = _listed(_at(json_config.parse(text, self.where), path))
            for place in reversed(range(len(found))):
                if self.ours(found[place]):
                    text = json_config.drop(text, (*path, place), self.where)
        return text

    def _without_empty(self, text: str, path: KeyPath, before: Any) -> str:
        while path and _at(before, path) is None:
            if _at(json_config.parse(text, self.where), path) not in ({}, []):
                return text
            text = json_config.drop(text, path, self.where)
            path = path[:-1]
        return text


@dataclass(frozen=True, slots=True)
class TomlConfigFile(ConfigFile):
    """A TOML file with one table of ours."""

    table: KeyPath = ()
    values: dict[str, Any] = field(default_factory=dict)

    def add(self, text: str) -> str:
        """Return the text with our table."""
        if _at(toml_config.parse(text, self.where), self.table) == self.values:
            return text
        return toml_config.put_table(text, self.table, self.values, self.where)

    def remove(self, text: str, before: str) -> str:  # noqa: ARG002 (a table holds only ours)
        """Return the text without our table."""
        return toml_config.drop_table(text, self.table, self.where)

    def server(self, text: str, more: KeyPath = ()) -> Any:
        """Return the entry of our server."""
        return _at(toml_config.parse(text, self.where), (*more, *self.table))


def _at(value: Any, path: Sequence[str]) -> Any:
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


# -- The entries of each agent


Json = dict[str, Any]

TOOLS = "Bash|BashOutput|TaskOutput|Read|Grep|WebFetch|WebSearch|mcp__.*"
_CODEX_TOOLS = "Bash|mcp__.*"
_TIMEOUT_SECONDS = 10
_ALLOWED = tuple(f"mcp__{SERVER_NAME}__context_{name}" for name in ("recall", "search", "usage"))
"""Tools that only read from our stash; the agent may call them without asking."""


def config_files(agent: str, paths: AgentPaths, commands: AgentCommands) -> list[ConfigFile]:
    """Return the configuration files of an agent, with our entries."""
    return _CONFIGS[agent](paths, commands)


def hooks_of(commands: AgentCommands, tools: str = TOOLS) -> dict[str, Json]:
    """Return the hooks of an agent by event, as its settings spell them."""
    return {
        "PostToolUse": {"matcher": tools, "hooks": [_hook(commands, "post-tool-use")]},
        "PreCompact": {"hooks": [_hook(commands, "pre-compact")]},
        "SessionStart": {"matcher": _STARTS, "hooks": [_hook(commands, "session-start")]},
    }


def server_of(commands: AgentCommands) -> Json:
    """Return the MCP server as `.mcp.json` spells it."""
    return {"command": commands.server[0], "args": commands.server[1:]}


def _status_line_of(commands: AgentCommands) -> Json:
    """Return the status line as Claude Code's settings spell it."""
    return {"type": "command", "command": commands.hook("status-line"), "padding": 0}


def _claude_code(paths: AgentPaths, commands: AgentCommands) -> list[ConfigFile]:
    hooks = _lists(hooks_of(commands))
    return [
        JsonConfigFile(
            paths.claude_servers,
            members={("mcpServers", SERVER_NAME): {"type": "stdio", **server_of(commands)}},
        ),
        JsonConfigFile(
            paths.claude_settings,
            optional={("statusLine",): _status_line_of(commands)},
            items={**hooks, ("permissions", "allow"): list(_ALLOWED)},
            ours=_is_ours,
        ),
    ]


def _codex(paths: AgentPaths, commands: AgentCommands) -> list[ConfigFile]:
    hooks = _lists(hooks_of(commands, _CODEX_TOOLS))
    return [
        TomlConfigFile(
            paths.codex / "config.toml",
            table=("mcp_servers", SERVER_NAME),
            values={**server_of(commands), "startup_timeout_sec": 20},
        ),
        JsonConfigFile(paths.codex / "hooks.json", items=hooks, ours=_is_ours),
    ]


def _cursor(paths: AgentPaths, commands: AgentCommands) -> list[ConfigFile]:
    return [
        JsonConfigFile(paths.cursor, members={("mcpServers", SERVER_NAME): server_of(commands)})
    ]


def _vscode(paths: AgentPaths, commands: AgentCommands) -> list[ConfigFile]:
    server = {"type": "stdio", **server_of(commands)}
    return [JsonConfigFile(paths.vscode, members={("servers", SERVER_NAME): server})]


_CONFIGS: dict[str, Callable[[AgentPaths, AgentCommands], list[ConfigFile]]] = {
    "claude-code": _claude_code,
    "codex": _codex,
    "cursor": _cursor,
    "vscode": _vscode,
}


def _lists(hooks: dict[str, Json]) -> dict[KeyPath, list[Any]]:
    return {("hooks", event): [group] for event, group in hooks.items()}


def _hook(commands: AgentCommands, event: str) -> Json:
    return {"type": "command", "command": commands.hook(event), "timeout": _TIMEOUT_SECONDS}


def _is_ours(value: Any) -> bool:
    """Return whether a hook group, a status line or a permission is ours, of any version."""
    if isinstance(value, str):
        return value in _ALLOWED
    if not isinstance(value, dict):
        return False
    handlers = value.get("hooks")
    if isinstance(handlers, list):
        return bool(handlers) and all(map(_is_ours, handlers))
    return _is_our_hook(value.get("command"))
