"""Clients of a strict server, in every protocol."""

from __future__ import annotations

from typing import Any

from ctxgc.client import ChatClient
from ctxgc.testing import StrictServer

PROVIDERS = ("openai", "responses", "anthropic")
# Its tokenizer ships, so that client and server count alike.
MODEL = "gpt-4o"
LIMIT = 8_000


def settings(server: StrictServer, provider: str = "openai", **options: Any) -> dict[str, Any]:
    """Return what connects a client to the server, with its session in memory."""
    address = server.base_url if provider == "anthropic" else server.openai_base_url
    given: dict[str, Any] = {
        "model": MODEL,
        "provider": provider,
        "base_url": address,
        "api_key": "any",
        "sdk_options": {"max_retries": 0, "timeout": 60.0},
        "context_limit": LIMIT,
        "store": "memory:",
    }
    return {**given, **options}


def connected(server: StrictServer, provider: str = "openai", **options: Any) -> ChatClient:
    """Return a client that talks to the server and keeps its session in memory."""
    client = ChatClient()
    client.connect(**settings(server, provider, **options))
    return client


def read(path: str, lines: int = 3) -> str:
    """Read a file."""
    return "\n".join(f"{path}:{number}" for number in range(lines))


def roles(messages: list[Any]) -> list[str]:
    """Return who says what, whatever the protocol: roles, else the types of items."""
    return [message.get("role") or message["type"] for message in messages]
