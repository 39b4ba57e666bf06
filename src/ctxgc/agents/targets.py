"""What is put into the configuration of each agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ctxgc.agents.commands import SERVER_NAME, Commands, is_our_hook
from ctxgc.agents.places import Places
from ctxgc.agents.target import JsonTarget, KeyPath, Target, TomlTarget

Json = dict[str, Any]

TOOLS = "Bash|BashOutput|TaskOutput|Read|Grep|WebFetch|WebSearch|mcp__.*"
CODEX_TOOLS = "Bash|mcp__.*"
TIMEOUT_SECONDS = 10
ALLOWED = tuple(f"mcp__{SERVER_NAME}__context_{name}" for name in ("recall", "search", "usage"))
"""Tools that only read what is ours; the agent need not ask before it calls them."""


def targets_of(agent: str, places: Places, commands: Commands) -> list[Target]:
    """Return the files of an agent with what is ours in them."""
    return _TARGETS[agent](places, commands)


def hooks_of(commands: Commands, tools: str = TOOLS) -> dict[str, Json]:
    """Return the hooks of an agent by event, as its settings spell them."""
    return {
        "PostToolUse": {"matcher": tools, "hooks": [_hook(commands, "post-tool-use")]},
        "PreCompact": {"hooks": [_hook(commands, "pre-compact")]},
        "SessionStart": {"matcher": "compact", "hooks": [_hook(commands, "session-start")]},
    }


def server_of(commands: Commands) -> Json:
    """Return the MCP server as `.mcp.json` spells it."""
    return {"command": commands.server[0], "args": commands.server[1:]}


def status_line_of(commands: Commands) -> Json:
    """Return the status line as Claude Code's settings spell it."""
    return {"type": "command", "command": commands.hook("status-line"), "padding": 0}


def _claude_code(places: Places, commands: Commands) -> list[Target]:
    hooks = _lists(hooks_of(commands))
    return [
        JsonTarget(
            places.claude_servers,
            members={("mcpServers", SERVER_NAME): {"type": "stdio", **server_of(commands)}},
        ),
        JsonTarget(
            places.claude_settings,
            optional={("statusLine",): status_line_of(commands)},
            items={**hooks, ("permissions", "allow"): list(ALLOWED)},
            ours=_is_ours,
        ),
    ]


def _codex(places: Places, commands: Commands) -> list[Target]:
    hooks = _lists(hooks_of(commands, CODEX_TOOLS))
    return [
        TomlTarget(
            places.codex / "config.toml",
            table=("mcp_servers", SERVER_NAME),
            values={**server_of(commands), "startup_timeout_sec": 20},
        ),
        JsonTarget(places.codex / "hooks.json", items=hooks, ours=_is_ours),
    ]


def _cursor(places: Places, commands: Commands) -> list[Target]:
    return [JsonTarget(places.cursor, members={("mcpServers", SERVER_NAME): server_of(commands)})]


def _vscode(places: Places, commands: Commands) -> list[Target]:
    server = {"type": "stdio", **server_of(commands)}
    return [JsonTarget(places.vscode, members={("servers", SERVER_NAME): server})]


_TARGETS: dict[str, Callable[[Places, Commands], list[Target]]] = {
    "claude-code": _claude_code,
    "codex": _codex,
    "cursor": _cursor,
    "vscode": _vscode,
}


def _lists(hooks: dict[str, Json]) -> dict[KeyPath, list[Any]]:
    return {("hooks", event): [group] for event, group in hooks.items()}


def _hook(commands: Commands, event: str) -> Json:
    return {"type": "command", "command": commands.hook(event), "timeout": TIMEOUT_SECONDS}


def _is_ours(value: Any) -> bool:
    """Tell whether a hook group, a status line or a permission is ours, of whichever version."""
    if isinstance(value, str):
        return value in ALLOWED
    if not isinstance(value, dict):
        return False
    handlers = value.get("hooks")
    if isinstance(handlers, list):
        return bool(handlers) and all(map(_is_ours, handlers))
    return is_our_hook(value.get("command"))
