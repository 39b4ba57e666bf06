"""RootIndex: what the root rules ask for, as segments come, go and come back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxgc.core import is_request
from ctxgc.core.roots import ArrivalOrder, is_instruction, is_message, message_key
from tests.core.build import heap_of, seg
from tests.requirements import requirement


def message(segment_id: str, **fields: object) -> object:
    return seg(segment_id, **{"type": "message", "role": "user", **fields})


@requirement("S0.roots.last-messages")
def test_the_last_messages_slide_as_new_ones_come() -> None:
    heap = heap_of(*[message(f"m{n}") for n in range(4)], seg("note", type="note"))
    assert list(heap.root_index.last_messages(2)) == ["m3", "m2"]
    heap.add(message("m4"))
    assert list(heap.root_index.last_messages(2)) == ["m4", "m3"]
    assert list(heap.root_index.last_messages(0)) == []


def test_the_parts_of_a_message_count_as_one_and_come_together() -> None:
    heap = heap_of(
        message("a"),
        seg("b1", message_id="b", part="text"),
        seg("b2", message_id="b", part="tool_call"),
        message("c"),
    )
    assert list(heap.root_index.last_messages(2)) == ["c", "b1", "b2"]


def test_a_recalled_message_stands_where_it_stood_and_not_at_the_end() -> None:
    heap = heap_of(*[message(f"m{n}") for n in range(6)])
    for name in ("m1", "m4"):
        heap.stash(name)
    for name in ("m4", "m1"):
        heap.recall(name)
    assert list(heap.root_index.last_messages(3)) == ["m5", "m4", "m3"]
    assert list(heap.root_index.last_requests(6)) == ["m5", "m4", "m3", "m2", "m1", "m0"]


def test_a_recalled_error_is_no_newer_than_it_was() -> None:
    heap = heap_of(*[seg(f"e{n}", failed=True) for n in range(4)])
    heap.stash("e0")
    heap.recall("e0")
    assert list(heap.root_index.errors.last(3)) == ["e3", "e2", "e1"]


def test_a_request_is_what_the_user_says_and_not_what_a_tool_returns() -> None:
    heap = heap_of(
        message("q1"),
        seg("r", message_id="m", role="user", part="tool_result"),
        message("answer", role="assistant"),
        message("q2"),
    )
    assert list(heap.root_index.last_requests(5)) == ["q2", "q1"]
    assert heap.root_index.first_request == "q1"


def test_a_message_without_its_request_is_no_request() -> None:
    heap = heap_of(
        seg("said", message_id="m", role="user", part="text"),
        seg("result", message_id="m", role="user", part="tool_result"),
    )
    assert list(heap.root_index.last_requests(1)) == ["said", "result"]
    heap.stash("said")
    assert list(heap.root_index.last_requests(1)) == []
    assert list(heap.root_index.last_messages(1)) == ["result"]


def test_kinds_of_segments_are_told_apart() -> None:
    told = [
        (is_message(s), is_request(s), is_instruction(s), message_key(s))
        for s in (
            message("a"),
            seg("b", message_id="m", role="assistant"),
            seg("c", type="note", role="user"),
            seg("d", role="system"),
            seg("e", source="system"),
            seg("f", policy="locked"),
        )
    ]
    assert told == [
        (True, True, False, "a"),
        (True, False, False, "m"),
        (False, False, False, "c"),
        (False, False, True, "d"),
        (False, False, True, "e"),
        (False, False, True, "f"),
    ]


def test_what_leaves_is_in_no_set_any_more() -> None:
    heap = heap_of(
        seg(
            "a", type="decision", role="system", pinned=True, failed=True, protected_until=9,
            task_id="t", tags=["invariant"], message_id="m",
        )
    )  # fmt: skip
    recent = heap.root_index
    groups = (
        recent.pinned, recent.protected, recent.instructions, recent.invariants, recent.decisions,
        recent.tasks, recent.messages,
    )  # fmt: skip
    assert [len(group) for group in groups] == [1] * 7
    heap.stash("a")
    assert ([len(group) for group in groups], len(recent.errors)) == ([0] * 7, 0)
    heap.recall("a")
    assert ([len(group) for group in groups], len(recent.errors)) == ([1] * 7, 1)


PLACES = st.dictionaries(
    st.text("abcdefgh", min_size=1, max_size=2), st.integers(0, 40), max_size=20
)


def test_what_comes_back_stands_where_it_stood() -> None:
    newest = ArrivalOrder()
    for place, key in enumerate("abcde"):
        newest.put(key, place)
    newest.discard("b")
    newest.put("b", 1)
    assert (list(newest.last(3)), list(newest.last(9))) == (list("edc"), list("edcba"))


def test_a_key_that_is_there_keeps_its_place() -> None:
    newest = ArrivalOrder()
    newest.put("a", 1)
    newest.put("b", 2)
    newest.put("a", 3)
    assert (list(newest.last(2)), newest.place("a"), len(newest)) == (["b", "a"], 1, 2)


def test_none_are_asked_for_and_none_are_given() -> None:
    newest = ArrivalOrder()
    newest.put("a", 1)
    assert (list(newest.last(0)), list(newest.last(-1)), "a" in newest) == ([], [], True)


@given(PLACES, st.lists(st.integers(0, 19)), st.integers(0, 25))
def test_the_last_are_those_that_sorting_finds(
    places: dict[str, int], gone: list[int], count: int
) -> None:
    newest, keys = ArrivalOrder(), list(places)
    for key, place in places.items():
        newest.put(key, place)
    for key in {keys[n % len(keys)] for n in gone} if keys else ():
        newest.discard(key)
        del places[key]
    found = list(newest.last(count))
    assert [places[key] for key in found] == sorted(places.values(), reverse=True)[:count]
    assert len(set(found)) == len(found) == min(count, len(newest))
