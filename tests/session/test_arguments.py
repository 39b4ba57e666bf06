"""What a caller may hand to a session, and what is refused before anything changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ctxgc import Session, collect
from ctxgc.errors import InputError
from ctxgc.stores import open_store
from tests.session.build import filled, state_of


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("context_limit", {"context_limit": 0}),
        ("config", {"config": {"threshold_percent": 75.0}}),
        ("plugin", {"plugin": object()}),
        ("store", {"store": 5}),
        ("session_id", {"session_id": 5}),
        ("session_id", {"session_id": ""}),
    ],
)
def test_a_session_names_the_argument_that_is_wrong(field: str, options: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        Session(**{"context_limit": 1_000, "store": "memory:", **options})

    assert caught.value.details["field"] == field


def test_window_counter_and_prices_follow_from_the_model() -> None:
    session = Session(model="claude-sonnet-4-5", store="memory:")
    parts = session.inspect()
    assert session.context_limit == 200_000
    assert (parts.options.prices.name, session.usage().exact) == ("anthropic-5m", False)
    other = Session(model="gpt-4o", store="memory:", context_limit=9_000, prices="none")
    assert (other.context_limit, other.usage().exact) == (9_000, True)
    assert other.inspect().options.prices.name == "none"
    shorter, result = collect([{"role": "user", "content": "Hello"}], model="gpt-4o")
    assert (len(shorter), result.tokens_freed) == (1, 0)


def test_a_model_whose_window_is_unknown_needs_it_to_be_given() -> None:
    with pytest.raises(InputError, match="the window of 'mine' is not known") as caught:
        Session(model="mine", store="memory:")
    assert caught.value.details["field"] == "context_limit"
    assert "context_limit=" in caught.value.hint
    assert Session(9_000, model="mine", store="memory:").context_limit == 9_000


def test_a_continued_session_keeps_its_window_unless_the_model_has_a_smaller_one() -> None:
    store = open_store("memory:")
    first = Session(150_000, store=store, session_id="s")
    first.append({"role": "user", "content": "Hello"})
    first.flush()
    assert Session(store=store, session_id="s").context_limit == 150_000
    assert Session(store=store, session_id="s", model="claude-opus-4-1").context_limit == 150_000
    assert Session(store=store, session_id="s", model="gpt-4o").context_limit == 128_000


@pytest.mark.parametrize(
    ("field", "call"),
    [
        ("target_tokens", lambda s: s.collect("100")),
        ("target_tokens", lambda s: s.plan(1.5)),
        ("target_tokens", lambda s: s.relieve(-1)),
        ("format", lambda s: s.messages(format="bogus")),
        ("plugin", lambda s: s.set_gc_plugin(None)),
        ("config", lambda s: s.set_gc_plugin("gc_none", {"max_turns": 3})),
        ("filters", lambda s: s.search("word", filters={"file": "a.py"})),
        ("filters", lambda s: s.search("word", filters={"type": "logs"})),
        ("filters", lambda s: s.search("word", filters="log")),
        ("task_id", lambda s: s.set_task(5)),
        ("depends_on", lambda s: s.set_task("a", depends_on="b")),
        ("path", lambda s: s.set_active_file(5)),
        ("line_range", lambda s: s.set_active_file("a.py", line_range=(9, 2))),
        ("line_range", lambda s: s.set_active_file("a.py", line_range="12")),
        ("ids", lambda s: s.delete("s-1", confirm=True)),
        ("callback", lambda s: s.events(None)),
    ],
)
def test_a_call_names_the_argument_that_is_wrong(
    field: str, call: Callable[[Session], object]
) -> None:
    session = filled(3)
    before = state_of(session)

    with pytest.raises(InputError) as caught:
        call(session)

    assert caught.value.details["field"] == field
    assert state_of(session) == before
    assert session.plugin.name == "gc_truncate"


def test_an_unknown_filter_names_the_nearest_known_one() -> None:
    with pytest.raises(InputError, match='did you mean "file_path"'):
        filled(1).search("word", filters={"filepath": "a.py"})


def test_a_range_of_lines_may_come_as_a_list() -> None:
    session = filled(1)

    session.set_active_file("a.py", line_range=[1, 5])  # type: ignore[arg-type] # as JSON gives it

    assert session.collect().success
