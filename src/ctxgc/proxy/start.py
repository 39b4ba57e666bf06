"""Starting a proxy: in the foreground for `ctxgc serve`, in a thread for `ctxgc wrap` and tests."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

import uvicorn

from ctxgc.config import SessionSettings
from ctxgc.errors import ConfigError, CtxgcError
from ctxgc.gate import address, allowed_hosts, is_loopback, listening, read_tokens
from ctxgc.places import state_folder, user_store
from ctxgc.proxy.app import ProxyApp
from ctxgc.proxy.collecting import Collecting, CollectOptions
from ctxgc.proxy.metrics import ProxyMetrics
from ctxgc.proxy.mounts import Mount, MountedApps, MountHost
from ctxgc.proxy.options import ProxyOptions
from ctxgc.proxy.spending import SpendCaps
from ctxgc.proxy.upstream import TOKEN_HEADER, Upstream
from ctxgc.session import open_store, utc_now

PATIENCE_SECONDS = 60.0
GRACE_SECONDS = 5


def run_proxy(options: ProxyOptions, mounts: Sequence[Mount] = ()) -> None:
    """Serve until the process is told to end; `mounts` are further applications in it."""
    with ProxyServer(options, mounts) as proxy:
        to = ", ".join(f"{name} -> {url}" for name, url in options.upstreams.items())
        token = f"; callers send {TOKEN_HEADER} from {proxy.token_path}" if proxy.token_path else ""
        lines = [f"ctxgc serves {proxy.url} ({to}){token}"]
        lines += [
            f"ctxgc serves {proxy.url}{each.path}{each.said and f' ({each.said})'}"
            for each in mounts
        ]
        sys.stderr.write("".join(f"{line}\n" for line in lines))
        sys.stderr.flush()
        proxy.wait()
        if options.collect:
            sys.stderr.write(f"ctxgc: {proxy.metrics.summary()}\n")


class ProxyServer:
    """A proxy, and what else is mounted, that serves from a thread while its `with` block runs.

    `clock` gives the present time, for tests and replays.
    """

    def __init__(
        self,
        options: ProxyOptions,
        mounts: Sequence[Mount] = (),
        *,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        checked_caps(options)
        self._options = options
        self.token_path = token_path(options)
        use_token = self.token_path is not None
        names = allowed_hosts(options.host, options.allowed_hosts, use_token=use_token)
        tokens = None if self.token_path is None else read_tokens(self.token_path)
        self._listener = listening(options.host, options.port)
        port = self._listener.getsockname()[1]
        hosts = frozenset(f"{name}:{port}" for name in names)
        self.url = address(self._listener, options.host)
        self.metrics = ProxyMetrics()
        collecting = _collecting(options, self.metrics, clock) if options.collect else None
        served = MountHost(port=port, hold=_nobody if collecting is None else collecting.held)
        app = ProxyApp(
            Upstream(options.upstreams),
            hosts=hosts,
            origins=frozenset({*(f"http://{host}" for host in hosts), *options.allowed_origins}),
            tokens=tokens,
            most_bytes=options.most_bytes,
            client_seconds=options.client_seconds,
            collecting=collecting,
            metrics=self.metrics,
        )
        # An answer that breaks off is told to the client by breaking off: that is no error of ours.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        config = uvicorn.Config(
            MountedApps(app, mounts, served),
            log_config=None,
            access_log=False,
            ws="none",
            lifespan="on",
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        self._server = _Server(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([self._listener],), name="ctxgc-proxy", daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._server.is_up.wait(PATIENCE_SECONDS):
            self.close()
            raise CtxgcError("the proxy did not start in time", hint="see its log")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def wait(self) -> None:
        """Return when the proxy was told to end, by Ctrl-C or a signal."""
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            while self._thread.is_alive():
                self._thread.join(1.0)
        except KeyboardInterrupt:
            return

    def close(self) -> None:
        """Stop serving; answers that are under way have a moment to end."""
        self._server.stop()
        if self._thread.is_alive():
            self._thread.join(PATIENCE_SECONDS)
        self._listener.close()


def token_path(options: ProxyOptions) -> Path | None:
    """Return the file with the tokens of callers: the given one, else one in the user's state folder.

    None: on loopback nobody needs one, unless that was asked for.
    """
    if is_loopback(options.host) and not options.use_token:
        return None
    return Path(options.token_file or Path(state_folder()) / "proxy.token")


def store_url(options: ProxyOptions) -> str:
    """Return the address of the store that keeps the sessions."""
    return options.store or SessionSettings.from_env().store or user_store()


def checked_caps(options: ProxyOptions) -> SpendCaps:
    """Return the caps on what is spent.

    Raises:
        ConfigError: nothing is kept that they could be about.
    """
    caps = SpendCaps(session=options.cap_session, day=options.cap_day)
    if caps != SpendCaps() and not options.collect:
        raise ConfigError(
            "a spend cap needs sessions, and --pass-through keeps none",
            hint="--observe changes nothing either, and counts what is spent",
            key="cap_session" if caps.day is None else "cap_day",
        )
    return caps


def _nobody(_name: str) -> AbstractContextManager[None]:
    """Nothing has a session open where nothing is collected."""
    return nullcontext()


def _collecting(
    options: ProxyOptions, metrics: ProxyMetrics, clock: Callable[[], datetime]
) -> Collecting:
    chosen = CollectOptions(
        context_limit=options.context_limit,
        own_compaction=options.own_compaction,
        recall=options.recall,
        report=options.report,
        observe=options.observe,
        holdout=options.holdout,
        caps=checked_caps(options),
    )
    return Collecting(open_store(store_url(options)), chosen, metrics, clock=clock)


class _Server(uvicorn.Server):
    """A server that says when it is up and stops at once when it is told to."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_up = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = asyncio.Event()

    async def main_loop(self) -> None:
        """Wait to be told, where uvicorn itself would poll ten times a second."""
        self._loop = asyncio.get_running_loop()
        self.is_up.set()
        await self._stopping.wait()

    def stop(self) -> None:
        """End `main_loop`; callable from any thread."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._stopping.set)
