"""`ctxgc mcp`: context management for agents, over stdio or HTTP."""

from __future__ import annotations

import logging
import sys
from typing import Any

import click

from ctxgc.cli.output import write_table
from ctxgc.errors import ConfigError

_PROFILES = ("minimal", "standard", "full")


@click.command(context_settings={"show_default": True})
@click.option("--http", "over_http", is_flag=True, help="Serve streamable HTTP instead of stdio.")
@click.option("--host", default="127.0.0.1", help="Address for HTTP.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8423,
    help="Port; 0 picks a free one.",
)
@click.option("--tools", type=click.Choice(_PROFILES), default="full", help="Set of tools.")
@click.option("--store", help="Store of the context: json:PATH, sqlite:PATH ...")
@click.option("--session", default="mcp", help="Name of the context in the store.")
@click.option("--context-limit", type=click.IntRange(min=1), help="The model's window in tokens.")
@click.option("--model", help="Model whose tokenizer to use.")
@click.option("--agent", help="Agent that starts it: usage is that of its own window.")
@click.option(
    "--root", "roots", multiple=True, help="Folder that transcripts may be imported from."
)
@click.option(
    "--token-file", help="Bearer tokens for HTTP, one caller per line; created if missing."
)
@click.option("--no-token", is_flag=True, help="HTTP on loopback without a token.")
@click.option("--allow-host", "allowed_hosts", multiple=True, help="Allowed Host header.")
@click.option("--allow-origin", "allowed_origins", multiple=True, help="Allowed Origin header.")
@click.option(
    "--print-schema-cost", is_flag=True, help="Print the tokens of each set of tools and exit."
)
def mcp(print_schema_cost: bool, over_http: bool, no_token: bool, **chosen: Any) -> None:
    """Serve context management to an agent.

    Without --http it talks to the agent that started it over stdin and stdout.
    """
    if print_schema_cost:
        _write_costs()
        return
    from ctxgc.mcp import ProtocolStdout  # noqa: PLC0415

    wire = None if over_http else ProtocolStdout()
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    _need_sdk()
    from ctxgc.mcp import ServerOptions, run_http, run_stdio  # noqa: PLC0415

    options = ServerOptions(use_token=not no_token, **chosen)
    if wire is None:
        run_http(options)
    else:
        run_stdio(options, wire)


def _write_costs() -> None:
    _need_sdk()
    from ctxgc.mcp import schema_costs  # noqa: PLC0415

    costs = schema_costs()
    write_table(("profile", "tokens (o200k)"), [(p, f"{tokens:,}") for p, tokens in costs.items()])


def _need_sdk() -> None:
    try:
        import mcp  # noqa: F401, PLC0415
    except ModuleNotFoundError:
        raise ConfigError(
            "the MCP server needs the package mcp", hint="pip install 'ctxgc[mcp]'", key="mcp"
        ) from None
