"""Thrashing: noticed when what left comes back too often, or when room is made too often."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from ctxgc.guard import Thrash, ThrashBreaker
from ctxgc.guard.monitor import (
    CLOSE,
    DEEPER,
    FIRST_PAUSE,
    LEAST_BACK,
    LITTLE,
    LONGEST_PAUSE,
    ROW,
    SEEN,
    SHARE,
    SOON,
)


def leave_and_return(
    breaker: ThrashBreaker, request: int, count: int = LEAST_BACK
) -> Thrash | None:
    names = [f"m{request}-{n}" for n in range(count)]
    breaker.note_left(names, request)
    return breaker.note_back(names, request + 1)


def test_what_comes_back_at_once_stops_collecting_for_a_while() -> None:
    breaker = ThrashBreaker()
    assert leave_and_return(breaker, 5, LEAST_BACK - 1) is None
    assert leave_and_return(breaker, 6, 1) == Thrash(left=3, came_back=3, pause=FIRST_PAUSE)
    paused = [breaker.is_paused(request) for request in (6, 7 + FIRST_PAUSE - 1, 7 + FIRST_PAUSE)]
    assert paused == [True, True, False]


def test_during_a_pause_nothing_is_found_again_but_room_is_made_deeper() -> None:
    breaker = ThrashBreaker()
    leave_and_return(breaker, 5)
    assert [breaker.take_depth(), breaker.take_depth()] == [DEEPER, 1.0]
    assert leave_and_return(breaker, 7) is None
    assert breaker.take_depth() == DEEPER
    assert [breaker.is_paused(6 + FIRST_PAUSE - n) for n in (1, 0)] == [True, False]


def test_each_pause_is_twice_the_last_up_to_a_bound() -> None:
    breaker, request, pauses = ThrashBreaker(), 0, list[int]()
    for _ in range(8):
        found = leave_and_return(breaker, request)
        assert found is not None
        pauses.append(found.pause)
        request += found.pause + 1
    assert pauses == [8, 16, 32, 64, 128, 256, 256, 256]
    assert pauses[-1] == LONGEST_PAUSE


def test_after_calm_the_first_pause_is_short_again() -> None:
    breaker = ThrashBreaker()
    leave_and_return(breaker, 0)
    breaker.note_left([f"calm {n}" for n in range(SEEN + 1)], 20)
    found = leave_and_return(breaker, 30, SEEN)
    assert found is not None
    assert found.pause == FIRST_PAUSE


def test_what_comes_back_late_or_seldom_is_no_thrashing() -> None:
    late, seldom = ThrashBreaker(), ThrashBreaker()
    names = [f"m{n}" for n in range(SEEN)]
    for breaker in (late, seldom):
        breaker.note_left(names, 0)
    assert late.note_back(names, SOON + 1) is None
    assert seldom.note_back(names[: int(SHARE * SEEN)], 1) is None
    assert seldom.note_back(names[: int(SHARE * SEEN) + 1], 1) is not None
    assert late.note_back(["never left"], 1) is None


def test_collections_in_a_row_that_win_little_make_the_next_one_deeper_once() -> None:
    breaker = ThrashBreaker()
    found = [breaker.note_room(request, LITTLE / 2) for request in range(ROW)]
    assert found == [*[None] * (ROW - 1), Thrash(in_a_row=ROW)]
    assert [breaker.take_depth(), breaker.take_depth()] == [DEEPER, 1.0]
    assert not breaker.is_paused(ROW)


def test_collections_far_apart_or_that_win_much_are_no_thrashing() -> None:
    breaker = ThrashBreaker()
    assert [breaker.note_room(n * (CLOSE + 1), 0.01) for n in range(9)] == [None] * 9
    assert [breaker.note_room(100 + n, LITTLE) for n in range(9)] == [None] * 9
    assert breaker.take_depth() == 1.0


@given(
    st.lists(st.tuples(st.sampled_from(["left", "back"]), st.integers(0, 40), st.integers(0, 9)))
)
def test_it_agrees_with_a_naive_count(moves: list[tuple[str, int, int]]) -> None:
    breaker, request, until = ThrashBreaker(), 0, 0
    log: list[tuple[str, int]] = []
    back: set[tuple[str, int]] = set()
    for what, message, later in moves:
        request += later
        name = f"m{message}"
        if what == "left":
            breaker.note_left([name], request)
            log = [each for each in log if each[0] != name] + [(name, request)]
            continue
        found = breaker.note_back([name], request)
        log = log[-SEEN:]
        back |= {each for each in log if each[0] == name and request - each[1] <= SOON}
        again = back & set(log)
        is_found = len(again) >= LEAST_BACK and len(again) > SHARE * len(log)
        assert (found is not None) == (is_found and request >= until)
        if found is not None:
            assert (found.left, found.came_back) == (len(log), len(again))
            until = request + found.pause
        if is_found:
            log, back = [], set()


@given(st.lists(st.tuples(st.sampled_from(["left", "back", "room"]), st.integers(0, 9))))
def test_a_breaker_made_from_its_document_goes_on_like_the_first(
    work: list[tuple[str, int]],
) -> None:
    first, second = ThrashBreaker(), ThrashBreaker()
    for request, (action, number) in enumerate(work):
        found = [_work(each, request, action, number) for each in (first, second)]
        assert found[0] == found[1]
        doc = json.loads(json.dumps(second.to_doc()))
        second = ThrashBreaker()
        second.restate(doc)
        assert second.to_doc() == first.to_doc()
    assert first.take_depth() == second.take_depth()


def _work(breaker: ThrashBreaker, request: int, action: str, number: int) -> object:
    if action == "left":
        return breaker.note_left([f"m{n}" for n in range(number)], request)
    if action == "back":
        found = breaker.note_back([f"m{n}" for n in range(number)], request)
        return found, breaker.is_paused(request)
    return breaker.note_room(request, number / 50)
