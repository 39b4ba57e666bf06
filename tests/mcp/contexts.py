"""Contexts for the tests: small windows, a clock that stands still, counting that needs no vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from ctxgc.config import GCConfig
from ctxgc.mcp import ContextService, NewSegment
from ctxgc.stores import COLLECTIONS, Store, open_store
from tests.fakes import WordCounter, still

QUIET = GCConfig.from_dict({"auto_trigger": False})


def make(
    store: str | Store = "memory:",
    *,
    limit: int | None = 1_000,
    config: GCConfig = QUIET,
    clock: Callable[[], datetime] | None = None,
    session: str = "mcp",
    roots: Iterable[Path] = (),
    alone: bool = True,
) -> ContextService:
    """Return a service that counts words and does not collect by itself."""
    return ContextService(
        store,
        session,
        config=config,
        context_limit=limit,
        roots=roots,
        counter=WordCounter(),
        clock=clock or still(),
        alone=alone,
    )


def put(service: ContextService, *segments: NewSegment) -> list[str]:
    """Ingest segments and return their ids."""
    found: list[str] = service.ingest(segments, ())["segment_ids"]
    return found


OVERHEAD = 4
"""What a message costs besides its words."""


def log(number: int, words: int = 10, **more: Any) -> NewSegment:
    """Return a log that takes so many tokens in a session: its words, and those of its message."""
    rest = max(0, words - OVERHEAD - 1)
    text = " ".join([f"log{number}", *(f"w{number}x{n}" for n in range(rest))])
    return NewSegment(text=text, type="log", **more)


def logs(count: int, words: int = 10) -> list[NewSegment]:
    """Return numbered logs."""
    return [log(number, words) for number in range(count)]


def filled(service: ContextService, count: int = 40, words: int = 10) -> list[str]:
    """Put so many logs in and return their ids; the last ten are roots for having just come in."""
    for start in range(0, count, 20):
        service.ingest([log(n, words) for n in range(start, min(count, start + 20))], ())
    return [s["segment_id"] for s in service.segments(count, 0)["segments"]]


def everything(store: Store, session: str = "mcp") -> dict[str, Any]:
    """Return all documents of a session."""
    return {name: store.load(session, name) for name in COLLECTIONS}


def opened(url: str = "memory:") -> Store:
    """Return a store that several services can share."""
    return open_store(url)
