"""Goldens of stored sessions: written by the code of the first release, opened and continued by ours.

The inputs `stored-*` were written once, before the source was restructured. They are what people have
on their disks: a golden that changes says that their sessions would go on in another way.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from ctxgc import Session
from ctxgc.stores import open_store
from tools.golden import postgres
from tools.golden.account import Account
from tools.golden.book import GoldenBook
from tools.golden.places import keep_input, placed, quiet_place
from tools.golden.story import (
    SESSION,
    START,
    Clock,
    Format,
    Script,
    live,
    opened,
    play,
    recall_first,
    until,
)

FORMATS: dict[str, Format] = {"json": "openai", "sqlite": "anthropic", "postgres": "responses"}
"""In which format the session of each kind of store is; together they are all formats."""

_INPUTS = {"json": "stored.json", "sqlite": "stored.db", "postgres": "stored-postgres.json"}


def add_to(book: GoldenBook) -> None:
    """Add the goldens of stored sessions."""
    for kind in FORMATS:
        book.add(f"stored-{kind}.txt", partial(_continued, kind))


def write_inputs(folder: Path) -> None:
    """Write the stored sessions anew, by the code as it is: only for a new version of the stores."""
    for kind, format_ in FORMATS.items():
        script, clock = Script(format_), Clock()
        with _empty(kind, folder) as url, quiet_place(folder):
            with opened(url, script, clock) as session:
                live(session, script, clock)
            data = postgres.dump(url) if kind == "postgres" else _file_of(url).read_bytes()
        keep_input(_INPUTS[kind], data)


@contextmanager
def _empty(kind: str, folder: Path) -> Iterator[str]:
    if kind == "postgres":
        with postgres.database() as url:
            yield url
    else:
        yield f"{kind}:{folder / _INPUTS[kind]}"


def _file_of(url: str) -> Path:
    return Path(url.partition(":")[2])


@contextmanager
def _stored(kind: str, folder: Path) -> Iterator[str]:
    """Give the address of a store that holds the session of its kind."""
    with _empty(kind, folder) as url:
        if kind == "postgres":
            postgres.load(url, _INPUTS[kind])
        else:
            placed(folder, _INPUTS[kind])
        yield url


def _continued(kind: str, folder: Path) -> str:
    account = Account()
    with _stored(kind, folder) as url, quiet_place(folder):
        _go_on(url, Script(FORMATS[kind]), account)
        _say_documents(account, url)
    return account.text()


def lived_and_continued(url: str, folder: Path) -> str:
    """Return the account of a session that is lived in a store by our code, and then opened again there.

    Of a store in memory there is only the one that lived; it should say what a JSON store says.
    """
    account, script, clock = Account(), Script("openai"), Clock()
    store: Any = open_store(url) if url == "memory:" else url
    with quiet_place(folder):
        first = opened(store, script, clock)
        live(first, script, clock)
        first.flush()
        _go_on(store, script, account)
        _say_documents(account, store)
        if store is not url:
            first.close()
    return account.text()


def _go_on(store: Any, script: Script, account: Account) -> None:
    """Open the session of the story, say what it is, go on with it, and say what became of it."""
    clock = Clock(START)
    clock.wait(3_600)
    session = opened(store, script, clock)
    events: list[Any] = []
    session.events(lambda event: events.append([event.number, event.kind, event.at, event.data]))
    say_session(account, "opened", session)
    account.say("checkpoints", _checkpoints(session))
    for place in play(session, script, clock, 120, 132):
        # Named before the usage, which may hold it in the order of chance.
        account.say(f"message {place}", session.arrivals()[-1])
        account.say(f"usage after message {place}", session.usage().to_dict())
    account.say("recalled first", recall_first(session))
    account.say("found 'harvest'", session.search("harvest", limit=4))
    account.say("found 'parse' stashed", session.search("parse", 3, {"tier": "stashed"}))
    account.attempt("undone", session.undo)
    account.attempt("undone again", session.undo)
    session.pin(session.history[-2].message_id)
    session.set_task("third", depends_on=("second",))
    account.attempt("collected", lambda: session.collect(session.usage().total_tokens // 2))
    say_session(account, "after the collection", session)
    account.attempt("unknown handle", lambda: session.recall("h-nothing"))
    account.say("learnt from usage", session.report_usage(session.usage().total_tokens + 999))
    until(session, script, clock, 132, 200)
    account.attempt("truncated", lambda: _truncated(session))
    checkpoint = session.checkpoints()[0].checkpoint_id
    account.attempt("restored", lambda: session.restore(checkpoint).differences)
    say_session(account, "after the restore", session)
    account.attempt("last request", session.messages)
    account.attempt("deleted", lambda: session.delete([_stashed(session)], confirm=True))
    account.say("checkpoints that are left", _checkpoints(session))
    account.say("events", events)
    session.close() if isinstance(store, str) else session.flush()


def _truncated(session: Session) -> Any:
    session.set_gc_plugin("gc_truncate", session.config.replace(plugin_config={}))
    return session.collect(session.usage().total_tokens // 2)


def _stashed(session: Session) -> str:
    return next(s.segment_id for s in session.segments() if s.tier == "stashed")


def say_session(account: Account, title: str, session: Session) -> None:
    """Write down all that a session answers about itself."""
    # The first to name ids, because everything else may hold them in the order of chance.
    account.say(f"{title}: arrivals", ", ".join(session.arrivals()), most=5_000)
    account.say(f"{title}: usage", session.usage().to_dict())
    account.say(f"{title}: view", session.view())
    account.attempt(f"{title}: view in bytes", lambda: session.messages_json().decode())
    account.say(f"{title}: budget", session.budget.to_dict(), most=600)
    account.say(f"{title}: plan", session.plan())
    account.say(f"{title}: collections", [result.to_dict() for result in session.gc_history])
    account.say(f"{title}: segments", [_header(segment) for segment in session.segments()])


def _checkpoints(session: Session) -> list[list[Any]]:
    """Return the checkpoints without their sizes, which depend on how well random ids pack."""
    found = session.checkpoints()
    return [[each.checkpoint_id, each.label, each.timestamp, each.triggers] for each in found]


def _header(segment: Any) -> list[Any]:
    return [
        segment.segment_id, segment.type, segment.tier, segment.tokens, segment.pinned,
        segment.generation, segment.message_id, segment.name,
    ]  # fmt: skip


def _say_documents(account: Account, store: Any) -> None:
    """Write down all documents that the store holds of the session in the end."""
    opened_again = open_store(store) if isinstance(store, str) else store
    account.documents(opened_again, SESSION)
    opened_again.close()
