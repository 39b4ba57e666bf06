"""Callers: who may speak to the server over HTTP, each with a token and a context of its own."""

from __future__ import annotations

import hmac
import re
import secrets
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from ctxgc.errors import ConfigError
from ctxgc.mcp.service import ContextService
from ctxgc.stores.files import write_atomic

FIRST = "default"
SHORTEST = 16
_LINE = re.compile(r"(?:([A-Za-z0-9_.-]{1,64})\s+)?(\S+)")


def read_tokens(path: Path) -> dict[str, str]:
    """Return the callers of a token file with their tokens; a missing file is made with a fresh one.

    A line is `NAME TOKEN`; a token alone belongs to `default`. The file is for its owner only (0600).

    Raises:
        ConfigError: others may read it, a line is wrong, or a name or token occurs twice.
        StoreError: it cannot be made.
    """
    if not path.exists():
        write_atomic(path, f"{FIRST} {secrets.token_urlsafe(32)}\n".encode())
    try:
        if path.stat().st_mode & 0o077:
            raise ConfigError(f"others may read {path}", hint=f"chmod 600 {path}", key="token_file")
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}", key="token_file") from None
    return _tokens(path, [line.strip() for line in lines if line.strip()])


def _tokens(path: Path, lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        match = _LINE.fullmatch(line)
        if match is None or len(match[2]) < SHORTEST:
            hint = f"write NAME TOKEN, the token with {SHORTEST} characters or more"
            raise ConfigError(f"{path}: line {number} is wrong", hint=hint, key="token_file")
        name = match[1] or FIRST
        if name in found or match[2] in found.values():
            raise ConfigError(f"{path}: line {number} repeats a name or a token", key="token_file")
        found[name] = match[2]
    if not found:
        raise ConfigError(f"{path} is empty", hint="remove it, and one is made", key="token_file")
    return found


class Callers:
    """Knows callers by their tokens, and opens the context of each when it first speaks.

    Args:
        tokens: the token of each caller; None lets everybody in as `default`.
        open_service: opens the context of a caller.
    """

    def __init__(
        self, tokens: Mapping[str, str] | None, open_service: Callable[[str], ContextService]
    ) -> None:
        self._tokens = tokens
        self._open = open_service
        self._services: dict[str, ContextService] = {}
        self._lock = threading.Lock()

    def name_of(self, token: str) -> str | None:
        """Return whose token this is, in time that tells nothing; None if it is nobody's."""
        if self._tokens is None:
            return FIRST
        given = token.encode("utf-8", "surrogateescape")
        found = None
        for name, known in self._tokens.items():
            if hmac.compare_digest(known.encode(), given):
                found = name
        return found

    def service(self, name: str) -> ContextService:
        """Return the context of a caller."""
        with self._lock:
            if name not in self._services:
                self._services[name] = self._open(name)
            return self._services[name]

    def close(self) -> None:
        """Close every context that was opened."""
        for service in self._services.values():
            service.close()
