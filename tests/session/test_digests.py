"""Digests in the view of a session."""

from __future__ import annotations

from ctxgc import Session
from ctxgc.session.collecting import impose
from ctxgc.session.digests import leaving, notice_of, show_notice
from ctxgc.strategies.digest import handles_in


def _steps(count: int) -> Session:
    session = Session(50_000, store="memory:")
    for number in range(count):
        session.append({"role": "user", "content": f"ask {number}"})
        session.append({"role": "assistant", "content": f"reply {number}"})
    return session


def test_what_leaves_in_need_is_told_in_front_of_the_last_step() -> None:
    session = _steps(4)
    w, before = session._w, list(session.history)
    stay = [before[0], *before[-2:]]
    left = leaving(w, stay)
    impose(w, stay, "guard")
    notice = notice_of(w, left)
    assert notice is not None
    show_notice(w, notice)
    assert [m.message_id for m in session.history] == [
        before[0].message_id,
        before[-2].message_id,
        notice.message_id,
        before[-1].message_id,
    ]
    assert handles_in(notice.text()) == left
    read = [str(session.read(handle)) for handle in left]
    assert all(m.text() in text for m, text in zip(before[1:-2], read, strict=True))
    assert leaving(w, session.history) == []


def test_a_digest_that_leaves_hands_its_handles_on() -> None:
    session = _steps(3)
    w, before = session._w, list(session.history)
    impose(w, before[2:], "guard")
    notice = notice_of(w, ["s-1", "s-2"])
    assert notice is not None
    show_notice(w, notice)
    assert leaving(w, [m for m in session.history if m is not notice]) == ["s-1", "s-2"]
    assert leaving(w, session.history[1:]) != []


def test_without_a_way_back_nothing_is_told() -> None:
    session = Session(50_000, store="memory:", recall_call=None)
    session.append({"role": "user", "content": "ask"})
    assert notice_of(session._w, ["s-1"]) is None
    assert notice_of(_steps(1)._w, []) is None
