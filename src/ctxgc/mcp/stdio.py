"""Serving over stdin and stdout: whatever else anybody prints goes to stderr."""

from __future__ import annotations

import io
import sys
from contextlib import suppress
from typing import Any

import anyio
from mcp.server import Server
from mcp.server.stdio import stdio_server

from ctxgc.mcp.stdout import Wire


def serve_stdio(server: Server[Any], wire: Wire) -> None:
    """Serve one client until it closes its end."""
    with suppress(KeyboardInterrupt, BrokenPipeError):
        anyio.run(_serve, server, wire)


async def _serve(server: Server[Any], wire: Wire) -> None:
    source = io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8", errors="replace")
    streams = stdio_server(anyio.wrap_file(source), anyio.wrap_file(wire.text()))
    async with streams as (read, write):
        await server.run(read, write, server.create_initialization_options())
