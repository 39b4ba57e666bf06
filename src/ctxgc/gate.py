"""Who may call a server of ours: bearer tokens of callers, and the names it may be called by.

The MCP server and the proxy ask here; how a caller shows its token is their own affair.
"""

from __future__ import annotations

import hmac
import re
import secrets
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

from ctxgc.errors import ConfigError
from ctxgc.files import write_atomic

FIRST = "default"
SHORTEST = 16
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")

_LOOPBACK_BINDS = ("127.0.0.1", "localhost", "::1")
_LINE = re.compile(r"(?:([A-Za-z0-9_.-]{1,64})\s+)?(\S+)")


def is_loopback(host: str) -> bool:
    """Return whether only programs of this machine reach a server that is bound to a host."""
    return host in _LOOPBACK_BINDS


def allowed_hosts(host: str, named: Sequence[str], *, use_token: bool) -> tuple[str, ...]:
    """Return the host names that a server bound to `host` may be called by.

    Raises:
        ConfigError: it would serve other machines without a token or without an allowed host.
    """
    if is_loopback(host):
        return (*LOOPBACK, *named)
    if not use_token:
        raise ConfigError(
            f"{host} is not a loopback address, and there is no token",
            hint="leave --no-token out, or serve on 127.0.0.1",
            key="no_token",
        )
    if not named:
        raise ConfigError(
            f"serving on {host} needs allowed host names",
            hint="--allow-host NAME for each",
            key="allow_host",
        )
    return tuple(named)


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens already: a client that reads the address may call at once.

    Raises:
        ConfigError: the address cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Only of a socket that is named TCP does asyncio switch off the wait for more to send (40 ms).
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise ConfigError(
            f"cannot listen on {host}:{port}: {error.strerror}",
            hint="choose another --port; 0 takes a free one",
            key="port",
        ) from None
    return listener


def address(listener: socket.socket, host: str) -> str:
    """Return the URL at which a listening socket is called."""
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}"


# -- Tokens


def read_tokens(path: Path) -> dict[str, str]:
    """Return the callers of a token file with their tokens; a missing file is created with a fresh one.

    A line is `NAME TOKEN`; a token alone belongs to `default`. The file is for its owner only (0600).

    Raises:
        ConfigError: others may read it, a line is wrong, or a name or token occurs twice.
        StoreError: it cannot be created.
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


def caller_of(tokens: Mapping[str, str] | None, token: str) -> str | None:
    """Return the caller with a token, in constant time; None if there is none.

    Without tokens everyone is `default`.
    """
    if tokens is None:
        return FIRST
    given = token.encode("utf-8", "surrogateescape")
    found = None
    for name, known in tokens.items():
        if hmac.compare_digest(known.encode(), given):
            found = name
    return found
