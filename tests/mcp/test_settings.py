"""What stays: pins, the work at hand, and the configuration that says how far roots reach."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxgc import ContextSegment, EngineOptions, GCEngine, Heap
from ctxgc.config import load_config
from ctxgc.core import RootKnobs
from ctxgc.errors import ConfigError, CtxgcError, InputError
from ctxgc.mcp import NewSegment
from tests.fakes import WordCounter, still
from tests.mcp.contexts import QUIET, everything, filled, log, make, opened, put
from tests.requirements import requirement


@requirement("S0.tools.pin")
def test_a_pin_is_a_root_and_holds_what_it_refers_to() -> None:
    service = make()
    first, second, *_ = put(
        service, log(1, name="target"), log(2, name="source", references=("target",))
    )
    filled(service, 20)
    done = service.pin(["source"], None, pinned=True)
    assert (done["pinned"], done["unchanged"]) == ([second], [])
    assert (done["pins"], done["pinned_tokens"]) == (1, 10)
    candidates = {c["segment_id"] for c in service.analyze(100)["candidates"]}
    assert candidates.isdisjoint({first, second})
    assert service.pin([second], None, pinned=True)["unchanged"] == [second]


@requirement("S0.tools.unpin")
def test_an_unpinned_segment_may_leave_again() -> None:
    service = make()
    ids = filled(service, 20)
    service.pin([ids[0]], None, pinned=True)
    assert ids[0] not in {c["segment_id"] for c in service.analyze(100)["candidates"]}
    assert service.pin([ids[0]], None, pinned=False)["unpinned"] == [ids[0]]
    assert ids[0] in {c["segment_id"] for c in service.analyze(100)["candidates"]}


def test_all_that_a_query_finds_is_pinned() -> None:
    service = make()
    put(service, *[NewSegment(text=f"contract clause {n}") for n in range(4)])
    assert len(service.pin((), "contract clause", pinned=True)["pinned"]) == 4


def test_pins_cannot_fill_the_window() -> None:
    service = make(limit=100)
    ids = filled(service, 20)
    service.pin(ids[:5], None, pinned=True)
    with pytest.raises(InputError, match="half of the window"):
        service.pin([ids[5]], None, pinned=True)
    assert service.usage()["segments"]["pinned"] == 5


@requirement("S0.platform.active-editor")
def test_the_file_and_lines_of_the_active_editor_become_roots() -> None:
    service = make()
    inside, outside, *_ = put(
        service,
        log(101, file_path="src/a.py", line_range=(10, 20)),
        log(102, file_path="src/a.py", line_range=(90, 99)),
    )
    filled(service, 20)
    service.configure({"recent_files": 0})
    service.task({"active_file": "src/a.py", "line_range": (18, 30)})
    left = {c["segment_id"] for c in service.analyze(100, target_tokens=0)["candidates"]}
    assert inside not in left
    assert outside in left


@requirement("S0.platform.open-files")
def test_open_tabs_and_breakpoints_are_roots_however_many() -> None:
    service = make()
    names = [f"src/f{n}.py" for n in range(12)]
    ids = put(service, *[log(100 + n, file_path=name) for n, name in enumerate(names)])
    filled(service, 40)
    service.task({"open_files": [*names[:6], *(f"{name}:7" for name in names[6:])]})
    left = {c["segment_id"] for c in service.analyze(100, target_tokens=0)["candidates"]}
    assert left.isdisjoint(ids)
    service.task({"open_files": []})
    assert service.task({})["open_files"] == []


def test_what_is_put_in_belongs_to_the_current_task() -> None:
    service = make()
    (before,) = put(service, log(1))
    service.task({"task_id": "t1"})
    mine, theirs = put(service, log(2), log(3, task_id="t2"))
    said = service.ingest((), [{"role": "user", "content": "and a message"}])["segment_ids"]
    assert put(service, log(2)) == [mine]
    tasks = [service.segment(i).get("task_id") for i in (before, mine, theirs, *said)]
    assert tasks == [None, "t1", "t2", "t1"]


def test_a_task_that_fills_the_window_lets_its_oldest_go() -> None:
    service = make(config=QUIET.replace(recent_messages=0))
    service.task({"task_id": "t1"})
    ids = filled(service)
    plan = service.analyze(target_tokens=350)
    leaving = [candidate["segment_id"] for candidate in plan["candidates"]]
    assert plan["plan"]["short_of_target"] == 0
    assert leaving == ids[: len(leaving)]


def test_a_task_keeps_its_segments_until_it_is_cleared() -> None:
    service = make()
    (mine,) = put(service, log(77, task_id="t1"))
    filled(service, 20)
    service.task({"task_id": "t1", "depends_on": ["t0"]})
    assert mine not in {c["segment_id"] for c in service.analyze(100)["candidates"]}
    assert service.task({"task_id": ""})["task_id"] is None
    assert mine in {c["segment_id"] for c in service.analyze(100)["candidates"]}


def test_lines_without_a_file_are_refused() -> None:
    with pytest.raises(InputError, match="active_file"):
        make().task({"line_range": (1, 2)})


@requirement("S0.tools.configure-limits")
def test_soft_and_hard_limits_are_set_reported_and_kept() -> None:
    store = opened()
    service = make(store, limit=1_000)
    done = service.configure(
        {"context_limit": 2_000, "soft_limit_tokens": 600, "hard_limit_tokens": 1_500}
    )
    assert done["changed"]["context_limit"] == {"before": 1_000, "after": 2_000}
    assert done["changed"]["soft_limit_tokens"] == {"before": 700, "after": 600}
    assert done["usage"]["soft_limit"] == 600
    again = make(store, limit=1_000).analyze()["usage"]
    assert (again["context_limit"], again["soft_limit"], again["hard_limit"]) == (2_000, 600, 1_500)


@requirement("S0.tools.configure-windows")
def test_the_recency_windows_are_set() -> None:
    service = make()
    filled(service, 20)
    assert service.analyze()["plan"]["segments"] == 10
    done = service.configure({"recent_messages": 3, "decision_window_seconds": 0.0})
    assert sorted(done["changed"]) == ["decision_window_seconds", "recent_messages"]
    assert service.analyze()["plan"]["segments"] == 17


@requirement("S0.tools.configure-batch")
def test_the_batch_size_bounds_one_small_step() -> None:
    service = make(limit=1_000)
    service.configure({"batch": 5, "soft_limit_tokens": 100, "auto_trigger": True})
    done = service.ingest([log(n) for n in range(40)], ())
    assert done["collected"]["trigger"] == "soft limit"
    assert len(done["collected"]["stashed"]) == 5


@requirement("S0.incremental.soft-limit", "S0.incremental.batch")
def test_a_soft_limit_and_a_batch_in_a_file_mean_to_a_server_what_they_mean_to_an_engine(
    tmp_path: Path,
) -> None:
    limits = {"soft_limit_percent": 30.0, "batch": 5}
    file = tmp_path / "gc.json"
    file.write_text(json.dumps({**limits, "recent_messages": 0}), encoding="utf-8")
    service = make(limit=1_000, config=load_config(file))
    knobs = RootKnobs(recent_messages=0)
    engine = GCEngine(EngineOptions(context_limit=1_000, knobs=knobs, **limits))  # type: ignore[arg-type]
    heap = Heap(count=WordCounter().count)
    by_server, by_engine = [], []
    for start in range(0, 48, 8):
        came = [log(number) for number in range(start, start + 8)]
        answer = service.ingest(came, ())
        by_server.append((answer["usage"]["after"], len(_stashed(answer))))
        segments = [ContextSegment(text=each.text, type="log", tokens=10) for each in came]
        done = engine.update(heap, segments, now=still()())
        by_engine.append((heap.ledger.working.tokens, len(done.stashed) if done else 0))
    assert by_server == [(80, 0), (160, 0), (240, 0), (300, 2), (330, 5), (360, 5)]
    assert by_engine == by_server


def _stashed(answer: dict[str, Any]) -> list[str]:
    found: list[str] = answer["collected"]["stashed"] if "collected" in answer else []
    return found


def test_the_strategy_is_the_one_that_pruning_uses() -> None:
    service = make()
    service.configure({"strategy": "auto"})
    assert service.configure({})["config"]["strategy"] == "auto"


@pytest.mark.parametrize(
    "wrong",
    [
        {"soft_limit_tokens": 950, "hard_limit_tokens": 900},
        {"hard_limit_tokens": 2_000},
        {"soft_limit_tokens": 0},
        {"batch": 0},
        {"recent_messages": -1},
        {"target_percent": 101.0},
        {"context_limit": 0},
        {"context_limit": "large"},
        {"hard_limit_tokens": True},
        {"strategy": "delete"},
        {"strategy": ["stash"]},
        {"recent_mesages": 3},
    ],
)
def test_a_wrong_setting_changes_nothing(wrong: dict[str, Any]) -> None:
    store = opened()
    service = make(store)
    filled(service, 20)
    before = everything(store)
    with pytest.raises(ConfigError) as caught:
        service.configure({"recent_files": 1, **wrong})
    assert caught.value.message
    assert caught.value.hint
    assert everything(store) == before
    assert make(store).usage() == service.usage()
    assert service.configure({})["config"]["recent_files"] == 5


def test_errors_carry_code_message_and_next_step() -> None:
    service = make()
    with pytest.raises(CtxgcError) as caught:
        service.pin(["nobody"], None, pinned=True)
    assert caught.value.to_dict()["error"] == {
        "code": "unknown_segment",
        "message": "nothing here answers to 'nobody'",
        "hint": "context_search(query) lists what there is, with ids",
        "details": {"field": "segment_ids", "segment_id": "nobody"},
    }
