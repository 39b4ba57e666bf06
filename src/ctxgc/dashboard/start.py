"""Starting a dashboard of its own: `ctxgc dashboard`."""

from __future__ import annotations

import logging
import sys
import webbrowser
from pathlib import Path

import msgspec
import uvicorn

from ctxgc.dashboard.app import PATH, DashboardApp
from ctxgc.dashboard.sessions import DashboardSessions
from ctxgc.errors import ConfigError
from ctxgc.gate import LOOPBACK, address, is_loopback, listening, read_tokens
from ctxgc.places import state_folder
from ctxgc.session import Store

GRACE_SECONDS = 2


class DashboardOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a dashboard is served."""

    host: str = "127.0.0.1"
    port: int = 8788
    show_secrets: bool = False
    opens_browser: bool = True


def dashboard_tokens() -> dict[str, str]:
    """Return who may look at dashboards: the user's own token, which is made when it is first asked for.

    Raises:
        ConfigError: others may read the file, or it is wrong.
    """
    return read_tokens(Path(state_folder()) / "dashboard.token")


def run_dashboard(options: DashboardOptions, store: Store | None) -> None:
    """Serve the dashboard until the process is told to end.

    Raises:
        ConfigError: the address cannot be had, or other machines could reach it.
    """
    if not is_loopback(options.host):
        raise ConfigError(
            f"{options.host} is not a loopback address",
            hint="leave --host out; to look from afar, forward the port with ssh -L",
            key="host",
        )
    listener = listening(options.host, options.port)
    tokens = dashboard_tokens()
    app = DashboardApp(
        DashboardSessions(store, show_secrets=options.show_secrets),
        tokens=tokens,
        port=listener.getsockname()[1],
        hosts=LOOPBACK,
    )
    link = f"{address(listener, options.host)}{PATH}/?token={next(iter(tokens.values()))}"
    sys.stderr.write(f"ctxgc dashboard: {link}\n")
    sys.stderr.flush()
    if options.opens_browser:
        webbrowser.open(link)
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    config = uvicorn.Config(
        app, log_config=None, access_log=False, ws="none", server_header=False, date_header=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )  # fmt: skip
    uvicorn.Server(config).run([listener])
