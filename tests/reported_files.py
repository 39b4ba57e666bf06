"""Session files with the usage that a provider would have reported."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ctxgc.tokens import counter_for, message_tokens
from ctxgc.wire.transcripts import writable
from tests.session_files import claude_code, codex, dumped

Json = dict[str, Any]
BESIDE = 9_000
"""The system prompt and the tools of the agent."""


def reported_claude_code(scale: float) -> bytes:
    """Return a session whose provider counts `scale` tokens for one of our bound."""
    lines = [json.loads(line) for line in claude_code().splitlines()]
    seen = _seen(lines, "claude-x")
    first: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        message = line.get("message", {})
        if message.get("role") == "assistant":
            at = first.setdefault(message["id"], number)
            message["usage"] = claude_usage(BESIDE + round(scale * seen(at)))
    return dumped(lines)


def claude_usage(prompt: int) -> Json:
    """Return a usage of Anthropic: most of the prompt was cached."""
    return {
        "input_tokens": 6,
        "cache_creation_input_tokens": 1_000,
        "cache_read_input_tokens": prompt - 1_006,
        "cache_creation": {"ephemeral_5m_input_tokens": 400, "ephemeral_1h_input_tokens": 600},
        "output_tokens": 50,
        "service_tier": "standard",
    }


def reported_codex() -> bytes:
    """Return a rollout with a count behind each answer; the last is written twice."""
    made = [json.loads(line) for line in codex().splitlines()]
    seen = _seen(made, None)
    lines: list[Json] = []
    for number, line in enumerate(made, 1):
        lines.append(line)
        said = line["payload"]
        if said.get("type") == "function_call" or said.get("role") == "assistant":
            lines.append(_count(BESIDE + seen(number), 1_000 * number))
    return dumped([*lines[:-1], lines[-2], lines[-1]])


def codex_usage(prompt: int) -> Json:
    """Return the count of one request as Codex notes it."""
    return {
        "input_tokens": prompt,
        "cached_input_tokens": prompt - 500,
        "cache_write_input_tokens": 400,
        "output_tokens": 50,
        "reasoning_output_tokens": 0,
        "total_tokens": prompt + 50,
    }


def _count(prompt: int, total: int) -> Json:
    last, all_ = codex_usage(prompt), {"total_tokens": total}
    info = {"last_token_usage": last, "total_token_usage": all_, "model_context_window": 272_000}
    return {"type": "event_msg", "payload": {"type": "token_count", "info": info}}


def _seen(lines: list[Json], model: str | None) -> Callable[[int], int]:
    """Return what tells how much of the window stands in front of a line."""
    counter = counter_for(model)
    found = [(entry.line, entry.message()) for entry in writable(dumped(lines)).entries]
    return lambda line: sum(
        message_tokens(message, counter) for at, message in found if message and at < line
    )
