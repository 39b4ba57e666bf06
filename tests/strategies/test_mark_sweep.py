"""gc_mark_sweep: what no root reaches leaves first, results before the rest."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ctxgc import Session
from ctxgc.collector import GCTriggerReason
from ctxgc.config import GCConfig, load_config
from ctxgc.core import is_tombstone
from ctxgc.testing import check_history
from ctxgc.wire import render
from tests.strategies.build import (
    collect,
    ids,
    output_of,
    requests,
    size_of,
    talk,
    with_results,
    words,
)

NARROW = GCConfig(recent_messages=2, recent_user_messages=1, recent_files=0)


def test_results_become_tombstones_and_every_call_keeps_its_result() -> None:
    history = with_results(*[(f"make part{n}", words(200, f"line{n}")) for n in range(8)])
    new, result = collect("gc_mark_sweep", history, target=size_of(history) // 3, config=NARROW)
    assert ids(new) == ids(history)
    assert check_history(render(new), "openai") == []
    stubs = [m for m in new if m.role == "tool" and is_tombstone(m.parts[0].text)]
    assert [item.child_key for item in result.removal_list] == ids(stubs)
    assert {item.why for item in result.removal_list} == {"unreachable"}
    assert result.tokens_after <= size_of(history) // 3


def test_identical_results_shrink_to_a_marker_and_the_last_copy_stays() -> None:
    same = words(150, "warning_unused_variable_x1")
    history = with_results(
        ("make a", same), ("make b", same), ("make c", same), ("make d", words(30, "other"))
    )
    target = size_of(history) - int(1.5 * size_of(history[2:3]))
    new, _ = collect("gc_mark_sweep", history, target=target, config=NARROW)
    assert "superseded (same text)" in output_of(new, "m2")
    assert "superseded (same text)" in output_of(new, "m4")
    assert output_of(new, "m6") == same


def test_a_command_that_was_run_again_leaves_before_what_is_current() -> None:
    history = with_results(
        ("make test", words(150, "red")),
        ("ls", words(150, "file")),
        ("make test", words(150, "green")),
    )
    new, _ = collect("gc_mark_sweep", history, target=size_of(history) - 100, config=NARROW)
    assert "superseded (run again)" in output_of(new, "m2")
    assert output_of(new, "m4").startswith("file")
    assert output_of(new, "m6").startswith("green")


def test_whole_groups_leave_when_tombstones_are_not_enough() -> None:
    history = talk(12, 30, tools=2)
    new, result = collect("gc_mark_sweep", history, target=size_of(history) // 6, config=NARROW)
    assert check_history(render(new), "openai") == []
    assert "unreachable, no longer recent message" in {item.why for item in result.removal_list}
    assert requests(new)[0] == 0
    assert requests(new)[-1] == 11


def test_a_turn_limit_is_kept_too() -> None:
    history = talk(10, tools=1)
    new, result = collect(
        "gc_mark_sweep",
        history,
        target=2 * size_of(history),
        config=GCConfig(max_turns=4, preserve_recent_turns=2),
        reason=GCTriggerReason.TURN_LIMIT,
    )
    assert requests(new) == [0, 8, 9]
    assert {item.reason for item in result.removal_list} == {"turn_limit"}


def test_the_result_says_what_is_won_and_what_is_written_again() -> None:
    history = with_results(*[(f"make part{n}", words(200, f"line{n}")) for n in range(4)])
    _, result = collect("gc_mark_sweep", history, target=size_of(history) // 2, config=NARROW)
    assert result.details["tokens_won"] == result.tokens_freed
    assert result.details["tokens_rewritten"] > 0
    assert "requests_to_pay_back" in result.details


def test_without_a_session_a_tombstone_names_no_handle() -> None:
    history = with_results(("make", words(300)))
    new, _ = collect("gc_mark_sweep", history, target=size_of(history) - 200, config=NARROW)
    assert is_tombstone(output_of(new, "m2"))
    assert "To see it again" not in output_of(new, "m2")


ROOT_KEYS = {
    "recent_messages": 14,
    "recent_user_messages": 4,
    "recent_files": 6,
    "decision_window_seconds": 60.0,
}


def collected_with(config: GCConfig) -> list[str]:
    """Return what a collection leaves of eight long results under this configuration."""
    history = with_results(*[(f"make part{n}", words(200, f"line{n}")) for n in range(8)])
    target = size_of(history) // 3
    new, _ = collect("gc_mark_sweep", history, target=target, config=config)
    return [message.text() for message in new]


@pytest.mark.parametrize("key", ROOT_KEYS)
def test_a_root_rule_reaches_as_far_by_file_and_by_environment_as_by_code(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_code = collected_with(GCConfig(**{key: ROOT_KEYS[key]}))
    file = tmp_path / "gc.json"
    file.write_text(json.dumps({"type": "mark_sweep", key: ROOT_KEYS[key]}), encoding="utf-8")
    assert collected_with(load_config(file)) == by_code
    monkeypatch.setenv(f"CTXGC_{key.upper()}", str(ROOT_KEYS[key]))
    assert collected_with(GCConfig()) == by_code
    assert collected_with(load_config(file)) == by_code
    assert by_code != collected_with(GCConfig.from_dict({}))


def test_what_the_environment_says_does_not_change_a_configuration_made_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = GCConfig()
    before = collected_with(config)
    monkeypatch.setenv("CTXGC_RECENT_MESSAGES", "14")
    assert collected_with(config) == before


def session_view(**options: Any) -> str:
    """Return the view of a session after a collection by hand, without its random handles."""
    history = with_results(*[(f"make part{n}", words(300, f"line{n}")) for n in range(12)])
    with Session(context_limit=size_of(history) * 100 // 85, store="memory:", **options) as session:
        session.extend(render(history))
        session.collect()
        return re.sub(r"h-[a-z0-9]+", "h-", json.dumps(session.messages()))


def test_a_session_collects_alike_by_code_file_and_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plain = session_view()
    by_code = session_view(config=GCConfig(recent_messages=14))
    file = tmp_path / ".ctxgc" / "gc.json"
    file.parent.mkdir()
    file.write_text('{"type": "mark_sweep", "recent_messages": 14}', encoding="utf-8")
    by_file = session_view()
    file.unlink()
    monkeypatch.setenv("CTXGC_RECENT_MESSAGES", "14")
    assert session_view() == by_file == by_code != plain
