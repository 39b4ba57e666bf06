"""What a caller may hand to a session, and what is refused before anything changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctxgc import Session, collect
from ctxgc.errors import ConfigError, InputError
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


WRONG: dict[str, tuple[dict[str, Any] | None, dict[str, str], str]] = {
    "a value of a file": (
        {"type": "truncate", "threshold_percent": "high"}, {},
        ".ctxgc/gc.json: threshold_percent must be a number, got 'high'",
    ),
    "a key of a file": (
        {"treshold_percent": 70}, {}, '.ctxgc/gc.json: unknown configuration key "treshold_percent"',
    ),
    "two keys of a file": (
        {"threshold_percent": 50, "target_percent": 70}, {},
        ".ctxgc/gc.json: target_percent (70) is above threshold_percent (50)",
    ),
    "a plugin of a file": ({"type": "hybird"}, {}, '.ctxgc/gc.json: unknown GC plugin "hybird"'),
    "an option in a file": (
        {"type": "truncate", "plugin_config": {"summarizer": "extractive"}}, {},
        ".ctxgc/gc.json: gc_truncate does not summarize, so it takes no summarizer",
    ),
    "a variable": (
        None, {"CTXGC_BATCH": "0"}, "environment variable CTXGC_BATCH must be at least 1",
    ),
    "a variable against a default": (
        None, {"JAATO_GC_TARGET": "95"},
        "environment variable JAATO_GC_TARGET: target_percent (95) is above threshold_percent (80)",
    ),
    "a variable against a file": (
        {"threshold_percent": 70}, {"CTXGC_TARGET_PERCENT": "75"},
        "environment variable CTXGC_TARGET_PERCENT and .ctxgc/gc.json: target_percent (75) is above",
    ),
    "a plugin by a variable": (
        None, {"CTXGC_PLUGIN": "hybird"}, 'environment variable CTXGC_PLUGIN: unknown GC plugin "hybird"',
    ),
    "prices by a variable": (
        None, {"CTXGC_PRICES": "free"}, 'environment variable CTXGC_PRICES: unknown price sheet "free"',
    ),
}  # fmt: skip


@pytest.mark.parametrize(("content", "variables", "says"), WRONG.values(), ids=WRONG)
def test_a_wrong_value_is_named_with_the_file_or_the_variable_that_sets_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    content: dict[str, Any] | None,
    variables: dict[str, str],
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    if content is not None:
        (tmp_path / ".ctxgc").mkdir()
        (tmp_path / ".ctxgc" / "gc.json").write_text(json.dumps(content))
    with pytest.raises(ConfigError) as caught:
        Session(1_000, store="memory:")
    assert caught.value.message.replace(f"{tmp_path}/", "").startswith(says)
    assert "Expected" not in str(caught.value)


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


@pytest.mark.parametrize("method", ["read", "recall", "note_fault"])
def test_a_handle_that_is_not_a_text_is_refused(method: str) -> None:
    session = Session(1_000, store="memory:")
    with pytest.raises(InputError, match="a handle must be a text, got NoneType"):
        getattr(session, method)(None)
