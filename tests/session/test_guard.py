"""Every request is watched: alerts, checkpoints that are due, and the chart when it gets tight."""

from __future__ import annotations

from typing import Any

import pytest

from ctxgc import GCConfig, Session
from ctxgc.errors import ContextOverflowError, StoreError
from ctxgc.session import Event
from ctxgc.stores import open_store
from ctxgc.wire import Overflow
from tests.fakes import Clock
from tests.requirements import requirement

LIMIT = 10_000
# Nothing is collected before the guard's own marks, so that they are what is seen.
LATE: dict[str, Any] = {
    "threshold_percent": 99.0, "hard_limit_percent": 100.0, "pressure_percent": 99.0,
    "recent_messages": 1, "recent_user_messages": 1, "preserve_recent_turns": 0,
}  # fmt: skip


def words(count: int) -> str:
    return "word " * count


def session(**options: Any) -> tuple[Session, list[Event]]:
    """Return a session that has been asked something, and the events that it tells."""
    given: dict[str, Any] = {"store": "memory:", "config": GCConfig(**LATE), "clock": Clock()}
    made = Session(LIMIT, **{**given, **options})
    told: list[Event] = []
    made.events(told.append)
    made.append({"role": "user", "content": "start"})
    return made, told


def grow(made: Session, percent: float) -> None:
    """Add a turn that brings the context to a share of its limit."""
    missing = int(LIMIT * percent / 100) - made.usage().total_tokens
    made.append({"role": "assistant", "content": words(missing - 20)})
    made.append({"role": "user", "content": "go on"})


def triggers(made: Session) -> list[tuple[str, ...]]:
    return [info.triggers for info in made.checkpoints()]


def alerts(told: list[Event]) -> list[str]:
    return [event.data["level"] for event in told if event.kind == "alert"]


def test_an_alert_is_an_event_once_for_each_zone_that_is_entered() -> None:
    made, told = session()
    for percent in (40, 72, 74, 86, 88):
        grow(made, percent)
        made.messages()
        made.messages()
    assert alerts(told) == ["WARNING", "DANGER"]
    made.collect(1_000)
    made.messages()
    grow(made, 75)
    made.messages()
    assert alerts(told) == ["WARNING", "DANGER", "WARNING"]


def test_a_restarted_process_does_not_repeat_an_alert() -> None:
    store = open_store("memory:")
    made, told = session(store=store, session_id="s")
    grow(made, 75)
    made.messages()
    made.flush()
    again = Session(LIMIT, store=store, session_id="s", config=GCConfig(**LATE))
    again.events(told.append)
    again.messages()
    assert alerts(told) == ["WARNING"]


def test_a_checkpoint_is_made_above_eighty_percent_and_not_again_while_it_stays_there() -> None:
    made, _ = session()
    grow(made, 79)
    made.messages()
    assert triggers(made) == []
    grow(made, 81)
    made.messages()
    grow(made, 83)
    made.messages()
    assert triggers(made) == [("context_size_threshold",)]


def test_a_checkpoint_is_made_when_half_an_hour_has_passed() -> None:
    clock = Clock()
    made, _ = session(clock=clock)
    clock.wait(minutes=29)
    made.messages()
    assert triggers(made) == []
    clock.wait(minutes=2)
    made.messages()
    made.messages()
    assert triggers(made) == [("time_interval",)]
    clock.wait(minutes=31)
    made.messages()
    assert triggers(made) == [("time_interval",)] * 2


def test_a_checkpoint_by_hand_starts_the_half_hour_anew() -> None:
    clock = Clock()
    made, _ = session(clock=clock)
    clock.wait(minutes=29)
    made.checkpoint("by hand")
    clock.wait(minutes=29)
    made.messages()
    assert triggers(made) == [()]


def test_progress_makes_checkpoints_by_phase_by_fifth_task_and_before_a_risk() -> None:
    made, _ = session()
    assert made.progress(phase="design", tasks_completed=4) is None
    made.progress(phase="build")
    made.progress(tasks_completed=5)
    made.progress(tasks_completed=6)
    made.progress(next_operation="major_refactor")
    made.progress(phase="build", tasks_completed=9)
    assert triggers(made) == [("phase_transition",), ("task_milestone",), ("risky_operation",)]


def test_another_task_every_fifth_and_a_risky_one_make_a_checkpoint_before_the_next_request() -> (
    None
):
    made, _ = session()
    for name in ("a", "b", "b", "c", "d", "e", "f", None, "f", "major_refactor"):
        made.set_task(name)
        made.messages()
    phase = "phase_transition"
    assert triggers(made) == [
        (phase,), (phase,), (phase,), (phase,), (phase, "task_milestone"), (phase, "risky_operation"),
    ]  # fmt: skip


def test_a_reopened_session_goes_on_watching_where_it_was() -> None:
    clock, store = Clock(), open_store("memory:")
    made, _ = session(clock=clock, store=store, session_id="s")
    grow(made, 81)
    made.progress(phase="design", tasks_completed=4)
    made.messages()
    made.flush()
    clock.wait(minutes=20)
    again, _ = session(clock=clock, store=store, session_id="s")
    again.messages()
    assert triggers(again) == [("context_size_threshold",)]
    again.progress(phase="design", tasks_completed=5)
    again.progress(phase="build")
    again.flush()
    clock.wait(minutes=31)
    last, _ = session(clock=clock, store=store, session_id="s")
    last.messages()
    assert triggers(last)[1:] == [("task_milestone",), ("phase_transition",), ("time_interval",)]


def test_a_checkpoint_that_could_not_be_written_stays_due(monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store("memory:")
    made, _ = session(store=store)
    made.messages()
    with monkeypatch.context() as patched:
        patched.setattr(store, "commit", _full)
        with pytest.raises(StoreError, match="disk"):
            made.progress(tasks_completed=5)
    made.progress(tasks_completed=6)
    assert triggers(made) == [("task_milestone",)]


def _full(*_: Any, **__: Any) -> int:
    raise StoreError("the disk is full")


def test_danger_makes_a_checkpoint_once() -> None:
    made, _ = session(config=GCConfig(**LATE, checkpoint_percent=99.0))
    for percent in (86, 88, 90):
        grow(made, percent)
        made.messages()
    assert triggers(made) == [("danger_zone",)]


def test_critical_makes_an_emergency_checkpoint_and_collects() -> None:
    made, told = session(config=GCConfig(**LATE, checkpoint_percent=99.0))
    for percent in (30, 60, 84, 97):
        grow(made, percent)
    before = made.view()
    sent = made.messages()
    assert triggers(made) == [("emergency",)]
    assert made.usage().percent_used < 95
    assert sent != before
    assert alerts(told) == ["CRITICAL"]
    made.restore(made.checkpoints()[0].checkpoint_id)
    assert made.view() == before


def test_what_cannot_fit_is_an_error_that_names_it_and_the_view_is_kept() -> None:
    made, _ = session()
    made.set_system(words(9_000))
    made.append({"role": "assistant", "content": "yes"})
    made.append({"role": "user", "content": words(3_000)})
    with pytest.raises(ContextOverflowError) as caught:
        made.messages()
    names = [part["name"] for part in caught.value.details["parts"][:2]]
    assert names[0] == "system: system_prompt"
    assert names[1].startswith("user message ")
    kept = {segment.text for segment in made.segments()}
    assert kept == {"start", "yes", words(3_000)}


OFF: dict[str, tuple[str, dict[str, Any]]] = {
    "never": ("gc_none never collects", {"plugin": "gc_none"}),
    "by hand": (
        "collecting is switched off (auto_trigger=False)",
        {"config": GCConfig(**LATE, auto_trigger=False)},
    ),
    "not before a request": (
        "collecting before a request is switched off (check_before_send=False)",
        {"config": GCConfig(**LATE, check_before_send=False)},
    ),
}


@requirement("S3.config.watched-when-off")
@pytest.mark.parametrize(("why", "options"), OFF.values(), ids=OFF)
def test_a_session_that_does_not_collect_is_watched_and_nothing_moves(
    why: str, options: dict[str, Any]
) -> None:
    made, told = session(**options)
    for percent in (72, 82, 88, 94, 96, 98):
        grow(made, percent)
        before = made.view()
        assert made.messages() == made.messages() == before
    assert alerts(told) == ["WARNING", "DANGER", "CRITICAL"]
    entered = [event.data["now"] for event in told if event.kind == "zone_changed"]
    assert entered == ["warning", "danger", "critical"]
    assert triggers(made) == [("context_size_threshold",), ("danger_zone",), ("emergency",)]
    assert {"collected", "recalled", "refused"}.isdisjoint(event.kind for event in told)
    assert made.gc_history == []


@pytest.mark.parametrize("fills", ["append", "extend"])
@pytest.mark.parametrize(("why", "options"), list(OFF.values())[:2], ids=list(OFF)[:2])
def test_a_view_that_does_not_fit_is_an_error_that_says_that_nothing_collects(
    why: str, options: dict[str, Any], fills: str
) -> None:
    made, told = session(**options)
    turn = [{"role": "assistant", "content": words(5_600)}, {"role": "user", "content": "go on"}]
    for message in turn * 10:
        _ = made.append(message) if fills == "append" else made.extend([message])
    before = made.view()
    with pytest.raises(ContextOverflowError) as caught:
        made.messages()
    error = caught.value
    assert made.usage().percent_used > 500
    assert error.details["cause"] == why
    assert why in error.message
    assert len(error.details["parts"]) == len(before)
    assert made.view() == before
    assert made.gc_history == []
    assert triggers(made) == [("context_size_threshold",), ("emergency",)]
    assert alerts(told) == ["CRITICAL"]


def test_one_message_that_does_not_fit_is_an_error_though_nothing_is_checked_before_a_request() -> (
    None
):
    made, _ = session(config=GCConfig(**LATE, check_before_send=False))
    made.append({"role": "assistant", "content": "yes"})
    made.append({"role": "user", "content": words(12_000)})
    with pytest.raises(ContextOverflowError) as caught:
        made.messages()
    assert caught.value.details["cause"] == OFF["not before a request"][0]


@pytest.mark.parametrize("come_in", ["append", "extend", "sync"])
def test_without_the_check_before_a_request_whatever_comes_in_is_followed_by_one(
    come_in: str,
) -> None:
    made, _ = session(config=GCConfig(check_before_send=False), plugin="gc_truncate")
    history = [{"role": "user", "content": "start"}]
    for _ in range(8):
        new = [{"role": "assistant", "content": words(2_000)}, {"role": "user", "content": "go on"}]
        history += new
        if come_in == "append":
            made.append(new[0])
            made.append(new[1])
        else:
            made.extend(new) if come_in == "extend" else made.sync(history)
    assert made.usage().percent_used < 90
    assert made.gc_history != []


@requirement("S3.client.none-records-nothing")
def test_a_session_that_never_collects_records_no_collection() -> None:
    store = open_store("memory:")
    made, told = session(plugin="gc_none", store=store, session_id="s")
    grow(made, 90)
    results = [made.collect(), made.manual_gc(), made.relieve(100)]
    assert [(r.success, r.items_collected, r.tokens_freed) for r in results] == [(True, 0, 0)] * 3
    assert all(r.shortfall > 0 for r in results)
    made.messages()
    made.flush()
    assert made.gc_history == []
    assert store.load("s", "collections") == []
    assert "collected" not in {event.kind for event in told}
    assert Session(LIMIT, store=store, session_id="s", plugin="gc_none").gc_history == []


def test_a_refusal_moves_nothing_where_nothing_is_ever_collected() -> None:
    made, _ = session(plugin="gc_none")
    grow(made, 60)
    before = made.messages()
    with pytest.raises(ContextOverflowError, match="gc_none never collects"):
        made.recover(Overflow(kind="tokens", limit=5_000, used=6_000))
    assert made.view() == before


def test_an_overflow_names_how_much_must_stay_and_its_largest_part() -> None:
    made, _ = session()
    made.set_system(words(9_000))
    made.append({"role": "assistant", "content": "yes"})
    made.append({"role": "user", "content": words(3_000)})
    with pytest.raises(ContextOverflowError, match=r"system: system_prompt \(9") as caught:
        made.messages()
    assert caught.value.details["cause"].startswith("what must stay has 12")


def test_the_event_of_a_checkpoint_names_its_triggers() -> None:
    made, told = session()
    made.checkpoint("by hand")
    grow(made, 81)
    made.messages()
    made.progress(phase="design")
    made.progress(phase="build")
    named = [event.data["triggers"] for event in told if event.kind == "checkpoint"]
    assert named == [[], ["context_size_threshold"], ["phase_transition"]]


def test_a_new_configuration_moves_the_marks_of_the_guard() -> None:
    made, told = session()
    made.set_gc_plugin("gc_truncate", GCConfig(**LATE, warning_percent=30.0))
    grow(made, 40)
    made.messages()
    assert alerts(told) == ["WARNING"]
