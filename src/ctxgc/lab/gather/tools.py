"""The tools of a scripted agent: a file reader, a shell, SQL, the web, MCP, or one that nobody knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from ctxgc.lab.gather.things import Content
from ctxgc.testing import AgentCall, Chance

ToolKind = Literal["read_file", "shell", "sql", "web", "mcp", "unknown"]
TOOLS: tuple[ToolKind, ...] = ("read_file", "shell", "sql", "web", "mcp", "unknown")

_SUFFIX: dict[Content, str] = {
    "yaml": "yaml", "table": "csv", "prose": "md", "json": "json", "log": "log",
}  # fmt: skip
_SHELL: dict[Content, tuple[str, ...]] = {
    "yaml": ("kubectl get settings {name} -o yaml", "cat deploy/{name}.yaml"),
    "table": ("cat reports/{name}.csv", "grep -h {name} reports/all.csv"),
    "prose": ("cat docs/{name}.md", "git show main:docs/{name}.md"),
    "json": ("curl -s localhost:8080/settings/{name}", "jq . state/{name}.json"),
    "log": ("kubectl logs deploy/{name} --tail=500", "grep {name} /var/log/app.log"),
}
_SELECT = "SELECT * FROM settings WHERE service = '{name}' ORDER BY setting"
_UPDATE = "UPDATE settings SET line = '{new}' WHERE service = '{name}' AND line = '{old}'"
_Call = tuple[str, dict[str, Any]]


class FetchTools:
    """Makes the calls of one kind of tool; the same name is always fetched by the same call."""

    def __init__(self, kind: ToolKind, content: Content, chance: Chance) -> None:
        self._kind = kind
        self._content = content
        self._command = chance.choice(_SHELL[content])
        self.numbered = kind == "read_file" and chance.happens(0.5)

    def fetch(self, name: str, text: str, *, failed: bool = False) -> AgentCall:
        """Return the call that fetches a text."""
        tool, arguments = _FETCH[self._kind](name, self._content, self._command)
        return AgentCall(tool, arguments, self._shown(text), failed)

    def change(self, name: str, old: str, new: str) -> AgentCall:
        """Return the call that replaces a part of a text."""
        tool, arguments = _CHANGE[self._kind](name, self._content, old, new)
        return AgentCall(tool, arguments, "ok: 1 change")

    def _shown(self, text: str) -> str:
        if not self.numbered:
            return text
        lines = text.split("\n")
        return "\n".join(f"{number:6d}\t{line}" for number, line in enumerate(lines, start=1))


def _path(name: str, content: Content) -> str:
    return f"config/{name}.{_SUFFIX[content]}"


_FETCH: dict[ToolKind, Callable[[str, Content, str], _Call]] = {
    "read_file": lambda name, content, _: ("read_file", {"path": _path(name, content)}),
    "shell": lambda name, _, command: ("bash", {"command": command.replace("{name}", name)}),
    "sql": lambda name, *_: (
        "run_sql", {"query": _SELECT.replace("{name}", name)},
    ),
    "web": lambda name, *_: ("web_fetch", {"url": f"https://wiki.example.com/services/{name}"}),
    "mcp": lambda name, *_: ("mcp__inventory__get_service", {"service": name, "verbose": True}),
    "unknown": lambda name, *_: ("dossier", {"subject": name}),
}  # fmt: skip

_CHANGE: dict[ToolKind, Callable[[str, Content, str, str], _Call]] = {
    "read_file": lambda name, content, old, new: (
        "edit_file", {"path": _path(name, content), "old_string": old, "new_string": new},
    ),
    "shell": lambda name, content, old, new: (
        "bash", {"command": f"sed -i 's/{old}/{new}/' {_path(name, content)}"},
    ),
    "sql": lambda name, _, old, new: (
        "run_sql",
        {"query": _UPDATE.replace("{name}", name).replace("{old}", old).replace("{new}", new)},
    ),
    "web": lambda name, _, old, new: (
        "web_post", {"url": f"https://wiki.example.com/services/{name}", "old": old, "new": new},
    ),
    "mcp": lambda name, _, old, new: (
        "mcp__inventory__update_service", {"service": name, "replace": old, "with": new},
    ),
    "unknown": lambda name, _, old, new: ("amend", {"subject": name, "was": old, "becomes": new}),
}  # fmt: skip
