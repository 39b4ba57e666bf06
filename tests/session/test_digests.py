"""Digests in the view of a session."""

from __future__ import annotations

from ctxgc import Session
from ctxgc.session.collection import impose
from ctxgc.session.delete import leaving, notice_of, show_notice
from ctxgc.strategies import handles_in
from ctxgc.wire import Overflow


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


def test_only_what_is_out_is_told_and_once() -> None:
    session = _steps(4)
    w, before = session._w, list(session.history)
    left = leaving(w, before[-2:])
    impose(w, before[-2:], "guard")
    session.recall(left[0])
    session.delete([left[1]], confirm=True)
    notice = notice_of(w, [*left, *left])
    assert notice is not None
    assert handles_in(notice.text()) == left[2:]
    assert notice.text().startswith(f"[ctxgc: {len(left) - 2} older steps")
    show_notice(w, notice)
    assert notice_of(w, left) is None


def test_a_step_that_was_recalled_is_not_told_as_moved_out_by_the_next_recovery() -> None:
    session = Session(10_000, store="memory:", plugin="gc_truncate")
    for number in range(6):
        session.append({"role": "user", "content": f"ask {number} " * 50})
        session.append({"role": "assistant", "content": f"reply {number} " * 50})
    session.append({"role": "user", "content": "and now?"})
    session.messages()
    session.recover(_refused(session, 0.5))
    told = _told(session)
    session.recall(told[0])
    session.append({"role": "assistant", "content": "done"})
    session.append({"role": "user", "content": "go on " * 300})
    session.messages()
    session.recover(_refused(session, 0.9))
    here = {message.message_id for message in session.history}
    told_now = _told(session)
    assert told_now
    assert [h for h in told_now if session._w.heap.get(h).message_id in here] == []


def _refused(session: Session, share: float) -> Overflow:
    size = session.usage().total_tokens
    return Overflow(kind="tokens", used=size, limit=int(size * share))


def _told(session: Session) -> list[str]:
    notices = (m for m in session.history if m.origin == "gc_notice")
    return [handle for notice in notices for handle in handles_in(notice.text())]
