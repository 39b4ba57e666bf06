"""A Claude Code plugin with the same parts as an installation: manifest, server, hooks, commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ctxgc._version import __version__
from ctxgc.agents.agent_configs import SERVER_NAME, AgentCommands, hooks_of, server_of
from ctxgc.agents.installation import absolute_url
from ctxgc.errors import ConfigError
from ctxgc.files import write_atomic
from ctxgc.places import agents_folder

PLUGIN_RECALL_TOOL = "mcp__plugin_ctxgc_ctxgc__context_recall"
"""How Claude Code names a tool of a plugin's server."""

COMMANDS = {
    "context": "Show how full the context is and what fills it",
    "recall": "Bring something back that was moved out of the context",
}
_PAGES = {
    "context": """\
Call `context_usage` of the ctxgc server, and report the zone, the tokens and the largest parts in three
lines or fewer.
""",
    "recall": """\
Look for `$ARGUMENTS` with `context_search` of the ctxgc server, call `context_recall` with the handle of the
best hit, and quote what was found.
""",
}


_README = """\
# ctxgc

A garbage collector for the context of Claude Code. Huge tool outputs are moved to a stash before they enter
the conversation: their head, their tail and the matching lines stay, with the exact call that shows the
rest. Before a compaction the transcript is kept; after it, task, constraints, decisions and open errors come
back. Nothing is lost, and nothing leaves this machine.

Commands: `/ctxgc:context` shows how full the context is, `/ctxgc:recall WORDS` brings something back. It was
made by `ctxgc plugin-folder` and needs the ctxgc that made it: `pip install 'ctxgc[cli,mcp]'`.
"""


def write_plugin_folder(folder: Path, *, store: str | None = None) -> list[Path]:
    """Write a plugin that `claude --plugin-dir FOLDER` loads, and return its files.

    Raises:
        ConfigError: the folder already holds something else.
        StoreError: a file cannot be written.
    """
    folder = folder.absolute()
    stash = None if store is None else absolute_url(store)
    files = _files(AgentCommands("claude-code", Path(agents_folder()), stash, PLUGIN_RECALL_TOOL))
    others = [
        p for p in folder.rglob("*") if p.is_file() and str(p.relative_to(folder)) not in files
    ]
    if others:
        raise ConfigError(
            f"{folder} already holds {others[0].name}",
            hint="name a new folder, or an empty one",
            path=str(folder),
        )
    for name, text in files.items():
        write_atomic(folder / name, text.encode())
    return [folder / name for name in files]


def _files(commands: AgentCommands) -> dict[str, str]:
    hooks = {event: [group] for event, group in hooks_of(commands).items()}
    pages = {f"commands/{name}.md": _page(name) for name in COMMANDS}
    return {
        ".claude-plugin/plugin.json": _json(_manifest()),
        ".mcp.json": _json({"mcpServers": {SERVER_NAME: server_of(commands)}}),
        "hooks/hooks.json": _json({"hooks": hooks}),
        **pages,
        "README.md": _README,
    }


def _manifest() -> dict[str, Any]:
    return {
        "name": SERVER_NAME,
        "version": __version__,
        "description": "A garbage collector for the context: huge outputs are stashed, nothing is lost.",
        "author": {"name": "ctxgc"},
        "license": "Apache-2.0",
        "keywords": ["context", "garbage-collection", "mcp"],
    }


def _page(name: str) -> str:
    return f"---\ndescription: {COMMANDS[name]}\n---\n\n{_PAGES[name]}"


def _json(value: Any) -> str:
    return f"{json.dumps(value, indent=2)}\n"
