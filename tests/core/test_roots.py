"""The roots, each with its reason; and the two ways to ask for them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from ctxgc.core import GCState, Heap, RootKnobs
from ctxgc.core.roots import ROOT_RULES, compute_roots, root_reasons
from ctxgc.errors import ConfigError, InputError
from tests.core.build import LONG_AGO, NO_ROOTS, NOW, call, heap_of, result, seg, state
from tests.requirements import requirement


def reasons(heap: Heap, **fields: Any) -> dict[str, tuple[str, ...]]:
    """Return all roots with their reasons; asking one by one must give the same."""
    asked = state(heap, **fields)
    roots = compute_roots(asked)
    one_by_one = {s.segment_id: root_reasons(asked, s) for s in heap}
    found = {segment_id: roots.why(segment_id) for segment_id in sorted(roots)}
    assert found == {segment_id: why for segment_id, why in sorted(one_by_one.items()) if why}
    return found


def knobs(**fields: Any) -> RootKnobs:
    named = {name: getattr(NO_ROOTS, name) for name in NO_ROOTS.__struct_fields__}
    return RootKnobs(**{**named, **fields})


@requirement("S0.roots.pinned", "S1.roots.pinned")
def test_what_is_pinned_is_a_root() -> None:
    heap = heap_of(seg("a", pinned=True), seg("b"), seg("c"))
    heap.pin("b")
    assert reasons(heap) == {"a": ("pinned",), "b": ("pinned",)}
    heap.unpin("a")
    assert reasons(heap) == {"b": ("pinned",)}


@requirement("S0.roots.current-task", "S1.roots.current-task")
def test_segments_of_the_current_task_are_roots() -> None:
    heap = heap_of(seg("a", task_id="t1"), seg("b", task_id="t2"), seg("c"), seg("d", task_id=""))
    assert reasons(heap, current_task_id="t1") == {"a": ("current task",)}
    assert reasons(heap) == {}


@requirement("S0.roots.active-file", "S1.roots.active-file")
def test_segments_of_the_active_file_are_roots() -> None:
    heap = heap_of(seg("a", file_path="f"), seg("b", file_path="g"), seg("c"))
    assert reasons(heap, active_file="f") == {"a": ("active file",)}


@requirement("S0.roots.active-region")
def test_with_a_line_range_only_the_edited_region_is_a_root() -> None:
    heap = heap_of(
        seg("whole", file_path="f"),
        seg("inside", file_path="f", line_range=(10, 20)),
        seg("touching", file_path="f", line_range=(30, 90)),
        seg("outside", file_path="f", line_range=(91, 99)),
    )
    found = reasons(heap, active_file="f", active_range=(15, 30))
    assert found == dict.fromkeys(("inside", "touching", "whole"), ("active file",))


def test_a_stale_view_of_the_active_file_is_no_root() -> None:
    heap = heap_of(seg("a", file_path="f", access="read"), seg("b", file_path="f", access="read"))
    found = reasons(heap, active_file="f", knobs=knobs(recent_files=1))
    assert found == {"b": ("active file", "recent file")}


@requirement("S0.roots.recent-files")
def test_files_opened_by_the_host_or_used_by_the_agent_are_roots() -> None:
    heap = heap_of(
        *[seg(f"s{n}", file_path=f"f{n}", access="read") for n in range(4)],
        seg("mention", file_path="f9"),
    )
    two = knobs(recent_files=2)
    assert reasons(heap, knobs=two) == dict.fromkeys(("s2", "s3"), ("recent file",))
    heap.open_file("f0")
    assert reasons(heap, knobs=two) == dict.fromkeys(("s0", "s3"), ("recent file",))
    heap.open_file("f9")
    assert reasons(heap, knobs=two) == dict.fromkeys(("mention", "s0"), ("recent file",))


@requirement("S0.roots.last-messages", "S1.roots.recent-messages")
def test_the_last_messages_are_roots() -> None:
    heap = heap_of(*[seg(f"m{n}", type="message") for n in range(4)], seg("log"))
    found = reasons(heap, knobs=knobs(recent_messages=2))
    assert found == dict.fromkeys(("m2", "m3"), ("recent message",))


@requirement("S1.roots.recent-messages-default")
def test_ten_messages_are_recent_unless_told_otherwise() -> None:
    assert RootKnobs().recent_messages == 10
    heap = heap_of(*[seg(f"m{n}", type="message") for n in range(12)])
    found = compute_roots(GCState(heap=heap, now=NOW))
    assert found == {f"m{n}" for n in range(2, 12)}


def test_the_last_requests_and_the_first_are_roots() -> None:
    heap = heap_of(*[seg(f"q{n}", type="message", role="user") for n in range(4)])
    found = reasons(heap, knobs=knobs(recent_user_messages=1, original_request=True))
    assert found == {"q0": ("original request",), "q3": ("recent request",)}


@requirement("S1.roots.recent-decisions")
@pytest.mark.parametrize(("minutes", "fresh"), [(0, True), (60, True), (61, False)])
def test_decisions_of_the_last_hour_are_roots(minutes: int, fresh: bool) -> None:
    made = NOW - timedelta(minutes=minutes)
    heap = heap_of(
        seg("d", type="decision", created_at=made), seg("n", type="note", created_at=NOW)
    )
    window = RootKnobs().decision_window_seconds
    found = reasons(heap, knobs=knobs(decision_window_seconds=window))
    assert found == ({"d": ("recent decision",)} if fresh else {})


def test_system_text_and_what_is_locked_are_roots() -> None:
    heap = heap_of(seg("a", role="system"), seg("b", source="system"), seg("c", policy="locked"))
    assert reasons(heap) == dict.fromkeys("abc", ("instructions",))


@requirement("S0.roots.session-invariants")
def test_session_invariants_are_roots_for_the_whole_session() -> None:
    heap = heap_of(seg("overview", tags=["invariant"]), seg("rules"), seg("other"))
    assert reasons(heap, held={"rules": "project rules", "ghost": "gone"}) == {
        "overview": ("session invariant",),
        "rules": ("project rules",),
    }


def test_open_errors_are_roots_until_they_are_resolved() -> None:
    heap = heap_of(*[seg(f"e{n}", failed=True, command=f"c{n}") for n in range(3)])
    two = knobs(unresolved_errors=2)
    assert reasons(heap, knobs=two) == dict.fromkeys(("e1", "e2"), ("unresolved error",))
    heap.add(seg("ok", command="c2"))
    assert reasons(heap, knobs=two) == dict.fromkeys(("e0", "e1"), ("unresolved error",))


def test_a_tool_call_without_its_result_is_a_root() -> None:
    heap = heap_of(call("c1", "k1"), result("r1", "k1"), call("c2", "k2"))
    assert reasons(heap) == {"c2": ("open tool call",)}


def test_a_recalled_segment_is_a_root_until_its_protection_ends() -> None:
    heap = heap_of(seg("a"))
    heap.protect("a", heap.step + 2)
    assert reasons(heap) == {"a": ("recalled",)}
    heap.add_all([seg("b"), seg("c")])
    assert reasons(heap) == {}


@requirement("S0.roots.compute-roots")
def test_the_roots_are_the_union_of_all_rules_with_every_reason() -> None:
    heap = heap_of(
        seg("a", pinned=True, task_id="t", file_path="f"), seg("b", type="message"), seg("c")
    )
    found = reasons(heap, current_task_id="t", active_file="f", knobs=knobs(recent_messages=1))
    assert found == {"a": ("pinned", "current task", "active file"), "b": ("recent message",)}


@requirement("S0.roots.compute-roots")
@pytest.mark.parametrize("kind", [dict, SimpleNamespace])
def test_a_host_may_name_the_roots_as_sets_of_ids(kind: Callable[..., object]) -> None:
    state = kind(
        current_task_segment_ids={"a", "b"},
        last_n_message_ids=["m2", "m1"],
        pinned_segment_ids=frozenset({"b"}),
        active_file_context_segment_ids=set(),
    )
    roots = compute_roots(state)
    assert roots == {"a", "b", "m1", "m2"}
    assert {root: roots.why(root) for root in roots} == {
        "a": ("current task",),
        "b": ("current task", "pinned"),
        "m1": ("recent message",),
        "m2": ("recent message",),
    }
    assert compute_roots(kind(pinned_segment_ids={"p"})) == {"p"}


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({}, "state must be a GCState or have sets of ids, got dict"),
        (None, "state must be a GCState or have sets of ids, got NoneType"),
        ({"pinned_segment_ids": "abc"}, "pinned_segment_ids cannot be 'abc'"),
    ],
)
def test_what_names_no_roots_is_refused(state: object, message: str) -> None:
    with pytest.raises(InputError) as caught:
        compute_roots(state)
    assert caught.value.message == message


def test_what_is_stashed_is_no_root() -> None:
    heap = heap_of(seg("a", pinned=True, task_id="t", type="message"))
    heap.stash("a")
    assert reasons(heap, current_task_id="t", knobs=RootKnobs(), held={"a": "mine"}) == {}


def test_a_heap_without_any_hint_still_has_its_essential_roots() -> None:
    """Known fault 1: without descriptors the root set was empty."""
    heap = heap_of(
        seg("q", type="message", role="user"),
        seg("m", type="message", role="assistant"),
        seg("d", type="decision", created_at=NOW),
        seg("log"),
    )
    assert compute_roots(GCState(heap=heap, now=NOW)) == {"q", "m", "d"}


def test_zero_switches_a_rule_off() -> None:
    heap = heap_of(
        seg("q", type="message", role="user", created_at=NOW),
        seg("d", type="decision", created_at=NOW),
        seg("e", failed=True, file_path="f", access="run", created_at=NOW),
    )
    assert reasons(heap, knobs=NO_ROOTS) == {}


@pytest.mark.parametrize("field", RootKnobs.__struct_fields__)
def test_a_knob_below_zero_is_refused_by_name(field: str) -> None:
    with pytest.raises(ConfigError) as caught:
        RootKnobs(**{field: -1})
    assert caught.value.details == {"field": field}


def test_a_naive_time_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        GCState(heap=Heap(), now=datetime(2026, 1, 1))  # noqa: DTZ001 - naive on purpose
    assert caught.value.details == {"field": "now"}


def test_every_rule_has_a_name_of_its_own() -> None:
    names = [rule.reason for rule in ROOT_RULES]
    assert len(set(names)) == len(names) == 13


def test_a_root_set_knows_why_and_says_nothing_of_strangers() -> None:
    roots = compute_roots(state(heap_of(seg("a", pinned=True, created_at=LONG_AGO))))
    assert (roots, roots.why("a"), roots.why("z")) == ({"a"}, ("pinned",), ())
