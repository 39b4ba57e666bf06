"""The heap: arrivals, tiers, stand-ins, removal; the books always add up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.core import Amount, ContextSegment, Heap, rough_tokens
from ctxgc.core.codec import heap_from_json, heap_to_json
from ctxgc.core.heap import DIMENSIONS
from ctxgc.core.mark import mark_all
from ctxgc.errors import DuplicateSegmentError
from tests.core.build import call, calls, heap_of, result, seg
from tests.requirements import requirement


def tiers(heap: Heap) -> dict[str, str]:
    return {segment.segment_id: segment.tier for segment in heap}


def test_the_heap_keeps_a_copy_with_tokens_steps_and_place() -> None:
    given = seg("b", "twelve chars", refcount=7)
    heap = heap_of(seg("a"), given)
    own = heap.get("b")
    assert (own.tokens, own.created_step, own.last_touched_step, own.position) == (3, 2, 2, 1)
    assert (own.refcount, given.refcount, given.tokens, given.position) == (0, 7, None, -1)


def test_tokens_are_counted_once_and_only_when_missing() -> None:
    texts: list[str] = []

    def count(text: str) -> int:
        texts.append(text)
        return 5

    heap = Heap(count)
    for _ in range(3):
        heap.add_all([seg("a", "counted"), seg("b", "given", tokens=9)])
    assert (texts, heap.ledger.working) == (["counted"], Amount(2, 14))


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2)])
def test_a_heap_without_a_counter_takes_a_quarter_of_the_characters(text: str, tokens: int) -> None:
    assert rough_tokens(text) == tokens


def test_ingesting_three_times_is_ingesting_once() -> None:
    """Known fault 7: the same descriptors ingested three times made three copies."""
    batch = [seg("a"), seg("b", references=["a"]), seg("c", "parse_header in src/a.py")]
    once, thrice = Heap(), Heap()
    assert once.add_all(batch) == ["a", "b", "c"]
    for _ in range(3):
        assert thrice.add_all(batch) == ["a", "b", "c"]
    assert heap_to_json(thrice) == heap_to_json(once)


def test_segments_of_a_longer_life_move_the_clock_on() -> None:
    heap = heap_of(seg("a", created_step=40, last_touched_step=55), seg("b"))
    assert (heap.step, heap.get("b").created_step) == (56, 56)


@given(st.lists(st.integers(0, 7)))
def test_many_that_leave_at_once_leave_as_one_by_one(picked: list[int]) -> None:
    both = []
    for _ in range(2):
        heap = heap_of(
            seg("s0", tokens=3, task_id="t", tags=("x",), pinned=True),
            *(call(f"s{n}", f"c{n}", file_path="a.py", tokens=n) for n in (1, 2)),
            *(result(f"s{n}", f"c{n - 2}", file_path="a.py", failed=n == 3) for n in (3, 4)),
            seg("s5", references=("s0",), message_id="m", role="user"),
            seg("s6", type="decision", message_id="m", role="user", tier="stashed"),
            seg("s7", type="note", references=("s5", "s2"), source="plugin"),
        )
        heap.tenure("s7")
        both.append(heap)
    for pick in picked:
        both[0].stash(f"s{pick}")
    both[1].stash_all([f"s{pick}" for pick in picked])
    assert heap_to_json(both[0]) == heap_to_json(both[1])
    assert books_of(both[0]) == books_of(both[1])


def books_of(heap: Heap) -> list[object]:
    recent, tiers_ = heap.root_index, ("working", "stashed")
    return [
        heap.links.remembered,
        [list(heap.ledger.by(d, tier).items()) for d in DIMENSIONS for tier in tiers_],
        [
            recent.messages,
            recent.requests,
            recent.tasks,
            recent.pinned,
            list(recent.last_messages(9)),
        ],
        [list(recent.last_requests(9)), list(recent.errors.last(9)), heap.bonds.open_calls()],
        [(key, heap.keys.members(key)) for key in heap.keys.keys()],  # noqa: SIM118 - no dict
    ]


def test_what_comes_in_stashed_is_held_but_not_at_work() -> None:
    heap = heap_of(seg("a", tier="stashed", tokens=4), seg("b", tokens=3))
    assert [s.segment_id for s in heap.working()] == ["b"]
    assert (heap.ledger.stashed, heap.ledger.working) == (Amount(1, 4), Amount(1, 3))


def test_stash_and_recall_move_a_segment_there_and_back_with_the_same_text() -> None:
    heap = heap_of(seg("a", "text \ud800\x00", tokens=4), seg("b", tokens=3))
    heap.stash("a")
    heap.stash("a")
    assert tiers(heap) == {"a": "stashed", "b": "working"}
    heap.recall("a")
    heap.recall("a")
    assert tiers(heap) == {"a": "working", "b": "working"}
    assert heap.get("a").text == "text \ud800\x00"
    assert [s.segment_id for s in heap.working()] == ["a", "b"]


def test_the_books_add_up_after_every_operation() -> None:
    heap = heap_of(seg("a", tokens=5), seg("b", tokens=7, references=["a"]), seg("c", tokens=11))
    books = []
    for change in (
        lambda: heap.stash("a"),
        lambda: heap.replace("b", seg("b.stub", tokens=2, derived_from="b")),
        lambda: heap.remove("c"),
        lambda: heap.recall("b"),
        lambda: heap.remove("a"),
    ):
        change()
        ledger = heap.ledger
        assert ledger.balanced()
        books.append((ledger.working.tokens, ledger.stashed.tokens, ledger.deleted.tokens))
    assert books == [(18, 5, 0), (13, 12, 0), (2, 12, 11), (7, 7, 11), (7, 2, 16)]


def test_a_removed_segment_is_returned_as_it_was() -> None:
    heap = heap_of(seg("a"), seg("b", references=["a"]), seg("c", reply_to="b"))
    gone = heap.remove("b")
    assert (gone.references, gone.tier, "b" in heap) == (("a",), "working", False)


def test_those_derived_from_a_removed_segment_live_on_without_it() -> None:
    heap = heap_of(seg("a"), seg("b", derived_from="a", reply_to="a", tags=["ref:a", "x"]))
    heap.remove("a")
    b = heap.get("b")
    assert (b.derived_from, b.reply_to, b.tags, b.references) == (None, None, ("x",), ())
    assert heap_to_json(heap_from_json(heap_to_json(heap))) == heap_to_json(heap)


def test_the_id_of_a_deleted_segment_is_free_for_another_text() -> None:
    heap = heap_of(seg("a", "parse_header one", tokens=5), seg("b", references=["a"]))
    heap.remove("a")
    heap.add(seg("a", "format_footer two", tokens=3))
    assert (heap.get("a").text, heap.get("a").refcount) == ("format_footer two", 0)
    assert heap.mentions.holders("parse_header") == ()
    assert heap.ledger.ingested.segments == 3
    assert heap.ledger.balanced()


def test_a_stand_in_takes_the_place_and_the_links_of_its_original() -> None:
    heap = heap_of(seg("root"), seg("a", tokens=90), seg("b"))
    heap.link("root", "a")
    heap.replace("a", seg("a.stub", tokens=9, derived_from="a"))
    assert [s.segment_id for s in heap.working()] == ["root", "a.stub", "b"]
    assert mark_all(heap, ["root"]).reached() == {"root", "a.stub"}
    assert heap.get("a.stub").refcount == 1


def test_a_stand_in_is_no_arrival() -> None:
    heap = heap_of(seg("a", "parse_header fails " * 9), seg("b", "parse_header"))
    step, touches = heap.step, heap.get("b").touches
    heap.replace("a", seg("a.stub", "parse_header fails " * 3, derived_from="a"))
    assert (heap.step, heap.get("b").touches) == (step, touches)
    assert heap.mentions.holders("parse_header") == ("b", "a.stub")


def test_a_stand_in_with_a_taken_id_is_refused() -> None:
    heap = heap_of(seg("a"), seg("b"))
    before = heap_to_json(heap)
    with pytest.raises(DuplicateSegmentError):
        heap.replace("a", seg("b", "other"))
    assert heap_to_json(heap) == before


def test_a_recalled_original_takes_its_place_back_from_the_stand_in() -> None:
    heap = heap_of(call("c", "k"), result("r", "k", tokens=90))
    heap.replace("r", result("r.stub", "k", tokens=9, derived_from="r"))
    heap.recall("r")
    assert tiers(heap) == {"c": "working", "r": "working", "r.stub": "stashed"}
    assert set(heap.bonds.group(heap.get("c"))) == {"c", "r"}


def test_other_descendants_stay_when_their_original_is_recalled() -> None:
    heap = heap_of(seg("a"), seg("summary", derived_from="a"))
    heap.stash("a")
    heap.recall("a")
    assert tiers(heap) == {"a": "working", "summary": "working"}


@requirement("S0.incremental.bounded")
def test_the_work_of_an_arrival_does_not_grow_with_the_heap() -> None:
    """Counted in function calls: text that mentions, shares keys, replies, supersedes."""

    def arrivals(size: int) -> int:
        heap = Heap()
        heap.add_all(_arrival(n) for n in range(size))
        return calls(lambda: [heap.add(_arrival(size + n)) for n in range(16)])

    small, larger, large = (arrivals(size) for size in (128, 1_024, 8_192))
    assert large <= larger <= small


def _arrival(n: int) -> ContextSegment:
    return seg(
        f"s{n}",
        f"parse_header_{n % 7} of module_{n % 96}.py and nothing else in line {n}",
        type="message" if n % 2 else "code",
        role="user",
        file_path=f"src/module_{n % 32}.py",
        line_range=(n % 8 * 100, n % 8 * 100 + 50),
        access=None if n % 2 else "read",
        tags=[f"bug-{n % 4}"],
        topic_id="one topic for all",
        task_id=f"task-{n % 16}",
        message_id=f"m{n}",
    )
