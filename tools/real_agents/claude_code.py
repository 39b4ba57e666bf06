"""Claude Code on its stage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ctxgc.testing import RecordedRequest, ToolCall
from tools.real_agents.stage import Stage, text_of

_OWN = (".claude.json", ".claude/", ".cache/")
_RESERVE = 33_000
"""How much of its window it keeps free: it compacts before that is used."""
_QUIET = (
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER",
    "DISABLE_ERROR_REPORTING",
)  # fmt: skip


class ClaudeCode(Stage):
    """Claude Code, without an account, speaking to our server."""

    name = "claude-code"
    allowed = "Bash,Read,Grep,mcp__ctxgc"

    def is_own(self, name: str) -> bool:
        """Tell whether Claude Code itself writes a file."""
        return name.startswith(_OWN) and name != ".claude/settings.json"

    def settle(self) -> None:
        """Write settings of a user who has hooks and a status line of his own."""
        (self.home / ".claude").mkdir()
        mine = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}
        (self.home / ".claude" / "settings.json").write_text(json.dumps(mine), encoding="utf-8")

    def environment(self) -> dict[str, str]:
        """Return what keeps it away from everything but our server."""
        limit = self.compact_at
        window = {} if limit is None else {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": str(limit + _RESERVE)}
        return {
            **self.base_environment(),
            **window,
            **dict.fromkeys(_QUIET, "1"),
            "ANTHROPIC_BASE_URL": self.server.base_url,
            "ANTHROPIC_API_KEY": "any-text",
            "MCP_CONNECTION_NONBLOCKING": "0",  # a script does not wait for tools that come late
            "MCP_TIMEOUT": "120000",  # milliseconds: a busy machine starts our server late
        }

    def say(self, prompt: str, session: str | None = None) -> str:
        """Have one conversation, or go on with one, and return its id."""
        resume = ["--resume", session] if session else []
        events = self.events(prompt, *resume)
        return str(events[-1]["session_id"])

    def events(self, prompt: str, *more: str) -> list[dict[str, Any]]:
        """Return what it reports of one conversation."""
        shown = ("--output-format", "stream-json", "--verbose")
        out = self.agent("-p", prompt, *shown, "--allowedTools", self.allowed, *more)
        return [json.loads(line) for line in out.splitlines() if line.startswith("{")]

    def compact(self, session: str) -> None:
        """Compact a conversation by its own command, and go on with it."""
        self.say("/compact", session)
        self.say("go on", session)

    def shell(self, command: str) -> ToolCall:
        """Return the call that runs a command."""
        return ToolCall("Bash", {"command": command})

    def outputs(self, request: RecordedRequest) -> list[str]:
        """Return the tool outputs of a request, oldest first."""
        return [
            text_of(block.get("content"))
            for message in request.messages
            if isinstance(message.get("content"), list)
            for block in message["content"]
            if isinstance(block, dict) and block.get("type") == "tool_result"
        ]

    def history(self, request: RecordedRequest) -> list[Any]:
        """Return the messages of a request without the notes that it puts between them."""
        return [message for message in request.messages if message.get("role") != "system"]

    def transcript(self, session: str) -> Path:
        """Return the file of a conversation."""
        return next((self.home / ".claude" / "projects").rglob(f"{session}.jsonl"))
