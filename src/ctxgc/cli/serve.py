"""`ctxgc serve`: the proxy, which agents talk to instead of their provider."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ctxgc.errors import ConfigError

if TYPE_CHECKING:
    from ctxgc.proxy import Mount, ProxyOptions

F = TypeVar("F", bound=Callable[..., Any])


def collecting_options(command: F) -> F:
    """Give a command the options of a proxy that `serve` and `wrap` share."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS = (
    click.option(
        "--upstream", "named", multiple=True, metavar="PROVIDER=URL",
        help="Where requests of `anthropic` or `openai` go.  [default: the provider's own]",
    ),
    click.option("--store", help="Store of the sessions.  [default: CTXGC_STORE, else the user's]"),
    click.option(
        "--context-limit", type=click.IntRange(min=1), help="Window in tokens.  [default: the model's]"
    ),
    click.option(
        "--own-compaction", is_flag=True,
        help="Answer the agent's own compaction here, from the session, without a model.",
    ),
    click.option(
        "--recall/--no-recall", default=True,
        help="Send tools to recall what left, where the agent has none, and answer their calls.",
    ),
    click.option(
        "--report", type=click.Choice(["forwarded", "original"]), default="forwarded",
        help="Usage that clients see: of the request that was sent, or as if nothing had left.",
    ),
    click.option(
        "--observe", is_flag=True, help="Change nothing; measure what collecting would have saved."
    ),
    click.option(
        "--holdout", type=click.FloatRange(0, 100), default=0.0, metavar="PERCENT",
        help="Share of the sessions that are only observed.",
    ),
    click.option(
        "--cap-session", type=click.FloatRange(min=0), metavar="DOLLARS",
        help="Refuse requests of a session that has cost this much.",
    ),
    click.option(
        "--cap-day", type=click.FloatRange(min=0), metavar="DOLLARS",
        help="Refuse all requests once those of today (UTC) have cost this much.",
    ),
    click.option(
        "--pass-through", is_flag=True, help="Collect nothing: pass requests on as they are."
    ),
)  # fmt: skip


@click.command(context_settings={"show_default": True})
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=8787, help="Port; 0 picks a free one."
)
@collecting_options
@click.option("--token-file", help="Tokens of callers, one per line; created if missing.")
@click.option("--token", "use_token", is_flag=True, help="Ask for a token on loopback too.")
@click.option("--allow-host", "allowed_hosts", multiple=True, help="Allowed Host header.")
@click.option("--allow-origin", "allowed_origins", multiple=True, help="Allowed Origin header.")
def serve(named: tuple[str, ...], pass_through: bool, **chosen: Any) -> None:
    """Serve the proxy: set an agent's base URL to it, and its context is collected.

    MCP is served at /mcp, and the dashboard at /dashboard.

    \b
    ANTHROPIC_BASE_URL=http://127.0.0.1:8787 claude
    OPENAI_BASE_URL=http://127.0.0.1:8787/v1 my-agent
    """  # noqa: D301
    need_server()
    from ctxgc.proxy import ProxyOptions, run_proxy, upstreams  # noqa: PLC0415

    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    options = ProxyOptions(upstreams=upstreams(named), collect=not pass_through, **chosen)
    run_proxy(options, mounts(options))


def mounts(options: ProxyOptions) -> list[Mount]:
    """Return what is served in the process of the proxy, on its store: the dashboard, and MCP."""
    return [_dashboard(options), *([] if find_spec("mcp") is None else [_mcp(options)])]


def _dashboard(options: ProxyOptions) -> Mount:
    from ctxgc.dashboard import (  # noqa: PLC0415
        PATH,
        DashboardApp,
        DashboardSessions,
        dashboard_tokens,
    )
    from ctxgc.gate import allowed_hosts  # noqa: PLC0415
    from ctxgc.proxy import Mount, MountHost, store_url  # noqa: PLC0415
    from ctxgc.session import open_store  # noqa: PLC0415

    tokens = dashboard_tokens()

    def build(host: MountHost) -> DashboardApp:
        return DashboardApp(
            DashboardSessions(open_store(store_url(options))),
            tokens=tokens,
            port=host.port,
            hosts=allowed_hosts(options.host, options.allowed_hosts, use_token=True),
            origins=options.allowed_origins,
            hold=host.hold,
        )

    return Mount(path=PATH, build=build, said=f"open {PATH}/?token={next(iter(tokens.values()))}")


def _mcp(options: ProxyOptions) -> Mount:
    from ctxgc.mcp import ServerOptions, callers_note, mcp_app  # noqa: PLC0415
    from ctxgc.proxy import Mount, token_path  # noqa: PLC0415

    tokens = token_path(options)
    served = ServerOptions(
        store=options.store,
        host=options.host,
        token_file=None if tokens is None else str(tokens),
        allowed_hosts=options.allowed_hosts,
        allowed_origins=options.allowed_origins,
    )
    return Mount(
        path="/mcp", build=lambda host: mcp_app(served, host.port), said=callers_note(served)
    )


def need_server() -> None:
    """Raise ConfigError if the packages of the proxy are not installed."""
    try:
        import httpx2  # noqa: F401, PLC0415
        import starlette  # noqa: F401, PLC0415
        import uvicorn  # noqa: F401, PLC0415
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"the proxy needs the package {error.name}",
            hint="pip install 'ctxgc[serve]'",
            key="serve",
        ) from None
