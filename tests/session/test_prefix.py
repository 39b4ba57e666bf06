"""P13: between collections each view extends the last, byte for byte."""

from __future__ import annotations

import json

import pytest

from ctxgc.config import GCConfig
from ctxgc.core import FORMATS, Format
from ctxgc.session import Session
from ctxgc.testing import check_history, make_session


@pytest.mark.parametrize("plugin", ["gc_truncate", "gc_hybrid", "gc_budget", "gc_mark_sweep"])
@pytest.mark.parametrize("format_", FORMATS)
def test_the_prefix_breaks_only_where_a_collection_was_applied(
    plugin: str, format_: Format
) -> None:
    story = make_session(7, 260, format_)
    config = GCConfig(preserve_recent_turns=1, recent_messages=4, auto_recall=False)
    with Session(12_000, plugin=plugin, store="memory:", config=config) as session:
        breaks = applied = 0
        sent = ""
        for message in story.messages:
            session.append(message, format=format_)
            if _waits(session):
                continue
            known = _applied(session)
            view = session.messages()
            assert check_history(view, format_) == []
            applied += _applied(session) > known
            now = json.dumps(view)[:-1]
            breaks += not now.startswith(sent)
            sent = now
    assert breaks == applied > 1


def _applied(session: Session) -> int:
    """A cut for the price and room that is made before the same request are one break."""
    return sum(bool(result.removal_list) for result in session.gc_history)


def _waits(session: Session) -> bool:
    last = session.history[-1]
    return bool(last.calls()) or last.data.get("type") == "reasoning" or _batch_is_open(session)


def _batch_is_open(session: Session) -> bool:
    waiting: set[str] = set()
    for message in session.history:
        waiting |= set(message.calls())
        waiting -= set(message.results())
    return bool(waiting)


def test_what_a_receiver_does_to_a_view_stays_outside() -> None:
    with Session(1_000, store="memory:") as session:
        session.append({"role": "user", "content": [{"type": "text", "text": "hello"}]})
        view = session.messages()
        view[0]["content"][0]["cache_control"] = {"type": "ephemeral"}
        view.clear()
        assert session.messages() == [
            {"role": "user", "content": [{"type": "text", "text": "hello"}]}
        ]


def test_bytes_leave_as_they_came() -> None:
    raw = b'{"role":"user",  "content":"caf\\u00e9", "n":1.50}'
    with Session(1_000, store="memory:") as session:
        session.append(raw)
        assert session.messages_json() == b"[" + raw + b"]"
