"""Codex on its stage."""

from __future__ import annotations

from pathlib import Path

from ctxgc.testing import RecordedRequest, ToolCall
from tools.real_agents.stage import Stage, text_of

_CONFIG = """\
# a user's own words stay
model = "scripted-model"
model_provider = "local"
approval_policy = "never"
tool_output_token_limit = 40000

[model_providers.local]
name = "local"
base_url = "{url}"
wire_api = "responses"
env_key = "LOCAL_KEY"
"""
_OF_THE_USER = ("config.toml", "hooks.json")
_FLAGS = (
    "--skip-git-repo-check",
    # There is nobody who could review the hooks on a screen.
    "--dangerously-bypass-hook-trust",
    "-c", 'sandbox_mode="danger-full-access"',
)  # fmt: skip


class Codex(Stage):
    """Codex, without an account, speaking to our server."""

    name = "codex"

    def is_own(self, name: str) -> bool:
        """Tell whether Codex itself writes a file."""
        return name.startswith(".codex/") and name.rpartition("/")[2] not in _OF_THE_USER

    def is_ready(self, request: RecordedRequest) -> bool:
        """Tell whether the server has started; Codex does not wait for it."""
        return any(tool.get("name") == "mcp__ctxgc" for tool in request.body.get("tools", ()))

    def settle(self) -> None:
        """Write the configuration that names our server."""
        (self.home / ".codex").mkdir()
        config = _CONFIG.format(url=self.server.openai_base_url)
        (self.home / ".codex" / "config.toml").write_text(config, encoding="utf-8")

    def environment(self) -> dict[str, str]:
        """Return what it needs to know beside its configuration."""
        return {**self.base_environment(), "LOCAL_KEY": "any-text"}

    def say(self, prompt: str, session: str | None = None) -> str:
        """Have one conversation, or go on with one, and return its id."""
        resume = ["resume", session] if session else []
        self.agent("exec", *resume, *_FLAGS, *self._limit(self.compact_at), prompt)
        return session or self._newest().stem[-36:]

    def compact(self, session: str) -> None:
        """Go on with a conversation that is too long for the limit it is given."""
        self.agent("exec", "resume", session, *_FLAGS, *self._limit(1_000), "go on")

    def shell(self, command: str) -> ToolCall:
        """Return the call that runs a command."""
        return ToolCall("exec_command", {"cmd": command, "max_output_tokens": 40_000})

    def outputs(self, request: RecordedRequest) -> list[str]:
        """Return the tool outputs of a request, oldest first."""
        items = (item for item in request.messages if item.get("type") == "function_call_output")
        return [text_of(item.get("output")) for item in items]

    def transcript(self, session: str) -> Path:
        """Return the file of a conversation."""
        return next(self._sessions().rglob(f"rollout-*{session}.jsonl"))

    def _limit(self, tokens: int | None) -> tuple[str, ...]:
        return () if tokens is None else ("-c", f"model_auto_compact_token_limit={tokens}")

    def _newest(self) -> Path:
        return max(self._sessions().rglob("rollout-*.jsonl"), key=lambda path: path.name)

    def _sessions(self) -> Path:
        return self.home / ".codex" / "sessions"
