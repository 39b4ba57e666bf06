"""Sessions for tests: in memory, with a counter of whole words and a clock of their own."""

from __future__ import annotations

from typing import Any

from ctxgc.config import GCConfig
from ctxgc.session import Event, Session
from tests.fakes import Clock, WordCounter
from tests.strategies.build import turn

Json = dict[str, Any]


def make(limit: int = 2_000, plugin: Any = "gc_truncate", **options: Any) -> Session:
    """Return a session in memory; keys of GCConfig may be given beside those of Session."""
    keys = set(options) & set(GCConfig.__struct_fields__)
    config = GCConfig(**{"auto_recall": False, **{key: options.pop(key) for key in keys}})
    return Session(
        limit,
        plugin=plugin,
        config=config,
        **{"store": "memory:", "counter": WordCounter(), "clock": Clock(), **options},
    )


def filled(turns: int = 10, size: int = 50, *, tools: int = 0, **options: Any) -> Session:
    """Return a session with so many turns in it."""
    session = make(**options)
    for number in range(turns):
        session.extend(turn(number, size, tools=tools))
    return session


def events_of(session: Session) -> list[Event]:
    """Return a list that every event of the session is added to."""
    seen: list[Event] = []
    session.events(seen.append)
    return seen


def state_of(session: Session) -> Json:
    """Return everything about a session that a refused change must leave alone."""
    return {
        "view": session.view(),
        "budget": session.budget.to_dict(),
        "segments": session.segments(),
        "pins": session.usage().pinned_message_ids,
    }


def requests_in(session: Session) -> list[int]:
    """Return the numbers of the requests in the view."""
    texts = [m.text() for m in session.history if m.text().startswith("request ")]
    return [int(text.split()[1]) for text in texts]
