"""Goldens of the Session API: one conversation under each strategy that ctxgc has."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from ctxgc import GCConfig, GCPolicy, Session
from ctxgc.session import RECALL_CALL
from tools.golden.account import Account
from tools.golden.book import GoldenBook
from tools.golden.places import quiet_place
from tools.golden.stored import say_session
from tools.golden.story import Clock, LetterCounter, Script, play

STRATEGIES = ("gc_none", "gc_truncate", "gc_summarize", "gc_hybrid", "gc_budget", "gc_mark_sweep")
_LIMIT = 30_000  # too small for collections by price, which the stored sessions have
_LAST = 70


def add_to(book: GoldenBook) -> None:
    """Add a golden for each strategy."""
    for name in STRATEGIES:
        book.add(f"strategy-{name.removeprefix('gc_')}.txt", partial(_under, name))


def _under(plugin: str, folder: Path) -> str:
    """Play the conversation, collect by hand too, undo, and say what became of it each time."""
    account, script, clock = Account(), Script("openai"), Clock()
    config = GCConfig(preserve_recent_turns=1, recent_messages=4, recent_files=1)
    with quiet_place(folder):
        session = Session(
            _LIMIT, config=config, plugin=plugin, store="memory:", session_id="golden",
            counter=LetterCounter(), clock=clock, recall_call=RECALL_CALL,
        )  # fmt: skip
        events: list[Any] = []
        session.events(lambda event: events.append([event.number, event.kind, event.data]))
        session.set_tools(script.tools)
        session.enrich("docs", "Prices are in cents. " * 10)
        account.attempt("played", lambda: _played(session, script, clock))
        say_session(account, "played", session)
        account.attempt("planned deeper", lambda: session.plan(6_000))
        account.attempt("collected", lambda: session.collect(6_000).to_dict())
        account.say("view when collected", session.view())
        account.attempt("undone", session.undo)
        say_session(account, "undone", session)
        account.attempt("relieved", lambda: session.relieve().to_dict())
        account.say("view when relieved", session.view())
        account.say("events", events)
        session.close()
    return account.text()


def _played(session: Session, script: Script, clock: Clock) -> list[list[Any]]:
    """Return how full the context was after each request."""
    found: list[list[Any]] = []
    for place in play(session, script, clock, 0, _LAST):
        if len(found) == 3:
            session.pin(session.history[3].message_id)
            session.set_policy(session.history[5].message_id, GCPolicy.PRESERVABLE)
        usage = session.usage()
        found.append([place, usage.total_tokens, usage.zone, usage.messages, usage.stashed_tokens])
    return found
