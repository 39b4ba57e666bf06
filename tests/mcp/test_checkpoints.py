"""Checkpoints give the context back as it was, and say what cannot come back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctxgc.errors import CheckpointError, StoreError
from ctxgc.mcp import ContextService, NewSegment
from ctxgc.stores import Put
from tests.fakes import still
from tests.mcp.contexts import everything, filled, log, make, opened, put
from tests.requirements import requirement


def _shown(service: ContextService) -> list[dict[str, Any]]:
    """Every working segment with its text, as an agent would see it."""
    listed = service.segments(1_000, 0)["segments"]
    return [service.segment(s["segment_id"]) for s in listed if s["tier"] == "working"]


def test_a_restored_context_is_what_it_was() -> None:
    store = opened()
    service = make(store)
    ids = filled(service, 30)
    service.pin([ids[0]], None, pinned=True)
    service.task({"task_id": "t1"})
    before = _shown(service)
    made = service.checkpoint("half way")

    service.prune(ids[1:9])
    service.pin([ids[0]], None, pinned=False)
    service.task({"task_id": "t2"})
    service.configure({"recent_messages": 1})
    (late,) = put(service, NewSegment(text="came in later"))

    done = service.restore(made["checkpoint_id"])
    assert sorted(done["recalled"]) == sorted(ids[1:9])
    assert (done["stashed"], done["lost"]) == ([late], [])
    assert _shown(service) == before
    assert service.task({})["task_id"] == "t1"
    assert service.configure({})["config"]["recent_messages"] == 10
    assert service.recall(late)["text"] == "came in later"
    assert _shown(make(store))[:30] == before


def test_the_newest_checkpoint_or_one_by_its_label() -> None:
    clock = still()
    service = make(clock=clock)
    filled(service, 5)
    with pytest.raises(CheckpointError, match="no checkpoint yet"):
        service.restore(None)
    service.checkpoint("one")
    clock.wait(minutes=1)
    put(service, NewSegment(text="second thought"))
    service.checkpoint("two")
    assert service.restore(None)["label"] == "two"
    assert service.restore("one")["label"] == "one"
    assert [c["label"] for c in service.checkpoints()["checkpoints"]] == ["two", "one"]
    with pytest.raises(CheckpointError):
        service.restore("three")


def test_a_dry_run_of_a_restore_changes_nothing() -> None:
    store = opened()
    service = make(store)
    ids = filled(service, 30)
    service.checkpoint("one")
    service.prune(ids[:5])
    before = everything(store)
    assert len(service.restore("one", dry_run=True)["recalled"]) == 5
    assert everything(store) == before
    assert service.usage()["usage"]["tokens"] == 250


def test_a_compressed_context_comes_back_uncompressed() -> None:
    service = make(limit=10_000)
    long = "\n".join(f"wrote src/file_{n}.py" for n in range(60))
    put(service, NewSegment(text=long, type="log", name="a"))
    before = _shown(service)
    service.checkpoint("one")
    draft = service.draft(["a"], None)
    service.compress(draft, service.summarise(draft))
    service.restore("one")
    assert _shown(service) == before


def test_a_checkpoint_that_was_changed_behind_our_back_is_noticed() -> None:
    store = opened()
    service = make(store)
    filled(service, 5)
    made = service.checkpoint("one")["checkpoint_id"]
    doc = store.get("mcp", "checkpoints", made) or {}
    store.commit("mcp", [Put("checkpoints", made, {**doc, "task_queue": ["forged"]})])
    with pytest.raises(CheckpointError, match="does not match"):
        service.restore("one")


def test_files_that_changed_since_are_reported(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("one", encoding="utf-8")
    service = make(roots=[tmp_path])
    put(service, log(1))
    service.task({"open_files": [str(file)]})
    service.checkpoint("one")
    file.write_text("two", encoding="utf-8")
    assert service.restore("one")["files"] == [{"path": str(file), "kind": "changed"}]


def triggers(service: ContextService) -> list[list[str]]:
    """What each checkpoint was made for, oldest first."""
    return [c["triggers"] for c in service.checkpoints()["checkpoints"]][::-1]


@requirement("S4.triggers.context-size")
def test_a_full_context_makes_one_checkpoint_by_itself() -> None:
    clock = still()
    service = make(clock=clock, limit=100)
    for number in range(10):
        clock.wait(seconds=1)
        put(service, log(number))
    assert triggers(service) == [["context_size_threshold"]]


@requirement("S4.triggers.time")
def test_half_an_hour_without_a_checkpoint_makes_one_with_the_next_change() -> None:
    clock = still()
    service = make(clock=clock)
    put(service, log(1))
    clock.wait(minutes=31)
    service.usage()
    assert triggers(service) == []
    put(service, log(2))
    put(service, log(3))
    clock.wait(minutes=20)
    service.checkpoint("by hand")
    clock.wait(minutes=20)
    put(service, log(4))
    assert triggers(service) == [["time_interval"], ["request"]]


@requirement("S4.triggers.phase", "S4.triggers.milestone", "S4.triggers.risky-operation")
def test_another_task_every_fifth_one_and_a_risky_one_make_a_checkpoint() -> None:
    clock = still()
    service = make(clock=clock)
    for name in ("a", "b", "b", "c", "d", "e", "f", "major_refactor"):
        service.task({"task_id": name})
        clock.wait(minutes=1)
    phase = "phase_transition"
    assert triggers(service) == [
        [phase], [phase], [phase], [phase], [phase, "task_milestone"], [phase, "risky_operation"],
    ]  # fmt: skip


def test_a_server_goes_on_with_the_triggers_of_the_one_before() -> None:
    clock, store = still(), opened()
    first = make(store, clock=clock, limit=100)
    for number in range(10):
        put(first, log(number))
    first.task({"task_id": "a"})
    clock.wait(minutes=20)
    second = make(store, clock=clock, limit=100)
    put(second, log(11))
    assert triggers(second) == [["context_size_threshold"]]
    second.task({"task_id": "b"})
    assert triggers(second)[1:] == [["phase_transition"]]


def test_a_change_that_cannot_be_saved_leaves_its_checkpoint_due(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, store = still(), opened()
    service = make(store, clock=clock)
    put(service, log(1))
    clock.wait(minutes=31)
    with monkeypatch.context() as patched:
        patched.setattr(store, "commit", _full)
        with pytest.raises(StoreError, match="disk"):
            put(service, log(2))
    put(service, log(3))
    assert triggers(service) == [["time_interval"]]


def _full(*_: Any, **__: Any) -> int:
    raise StoreError("the disk is full")
