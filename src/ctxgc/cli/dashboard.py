"""`ctxgc dashboard`: sessions in the browser, request by request."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from ctxgc.cli.serve import need_server
from ctxgc.cli.stores import address_of, command_store, is_there, store_option

if TYPE_CHECKING:
    from ctxgc.session import Store

_EPILOG = """\b
Examples:
  ctxgc dashboard                    opens the browser
  ctxgc dashboard --no-open          prints the address
  ctxgc serve                        the proxy, with its dashboard

Exit codes: 0 stopped, 1 an error, 2 usage error.
"""


@click.command(
    short_help="Look at sessions in the browser, request by request.",
    epilog=_EPILOG,
    context_settings={"show_default": True},
)
@click.option("--host", default="127.0.0.1", help="Loopback address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=8788, help="Port; 0 picks a free one."
)
@store_option
@click.option("--no-open", is_flag=True, help="Do not open the browser.")
@click.option("--show-secrets", is_flag=True, help="Do not mask keys and passwords.")
def dashboard(
    host: str, port: int, store_url: str | None, *, no_open: bool, show_secrets: bool
) -> None:
    """Show every session of Claude Code and Codex on this machine, and those of ctxgc's store.

    For each one: what filled its window at every request, what left and why, what the prompt cache did,
    what it cost, and what the next collection would do. Recorded sessions are never changed.
    """
    need_server()
    from ctxgc.dashboard import DashboardOptions, run_dashboard  # noqa: PLC0415

    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    options = DashboardOptions(
        host=host, port=port, show_secrets=show_secrets, opens_browser=not no_open
    )
    with _store(store_url) as store:
        run_dashboard(options, store)


@contextmanager
def _store(url: str | None) -> Iterator[Store | None]:
    """Open the store for a `with` block; None if none was named and there is none yet."""
    if url is None and not is_there(address_of(None)):
        yield None
        return
    with command_store(url) as store:
        yield store
