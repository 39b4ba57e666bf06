"""ContextUsage: how full the context is, as an object and as the mapping that plugins read."""

from __future__ import annotations

import json

import pytest

from tests.session.build import filled, make


def test_it_is_an_object_and_a_mapping() -> None:
    usage = filled(4).usage()
    assert usage["total_tokens"] == usage.total_tokens == usage.get("total_tokens")
    assert usage.get("nothing", 7) == 7
    assert set(usage) >= {"percent_used", "context_limit", "turns", "zone"}
    with pytest.raises(KeyError):
        usage["nothing"]
    assert json.loads(json.dumps(usage.to_dict()))["turns"] == 4


def test_the_parts_make_up_the_whole() -> None:
    session = filled(6, tools=1, limit=4_000)
    session.set_system("one two three")
    session.set_tools([{"name": "bash"}])
    usage = session.usage()
    assert sum(usage.by_source.values()) == usage.total_tokens
    assert sum(usage.by_policy.values()) == usage.total_tokens
    assert usage.percent_used == pytest.approx(100 * usage.total_tokens / 4_000)
    assert usage.messages == 24
    session.collect(300)
    assert session.usage().stashed_tokens > 0


def test_an_empty_session_is_empty() -> None:
    usage = make().usage()
    assert (usage.total_tokens, usage.turns, usage.messages, usage.percent_used) == (0, 0, 0, 0.0)


def test_a_session_shows_itself_by_its_id_its_size_and_its_strategy() -> None:
    session = filled(4)
    tokens, limit = session.usage().total_tokens, session.context_limit
    assert repr(session) == (
        f"<Session {session.session_id!r}: {tokens:,} of {limit:,} tokens, "
        f"{len(session.history)} messages, {session.plugin.name}>"
    )
