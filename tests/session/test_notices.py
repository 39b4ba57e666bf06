"""Notices of what an emergency removed from the view."""

from __future__ import annotations

from ctxgc import Session
from ctxgc.collector import handles_in
from ctxgc.session import RECALL_CALL
from ctxgc.wire import Overflow


def _steps(count: int) -> Session:
    session = Session(50_000, store="memory:", recall_call=RECALL_CALL)
    for number in range(count):
        session.append({"role": "user", "content": f"ask {number}"})
        session.append({"role": "assistant", "content": f"reply {number}"})
    return session


def test_what_leaves_in_need_is_told_in_front_of_the_last_step() -> None:
    session = _steps(4)
    inside, before = session.inspect(), list(session.history)
    stay = [before[0], *before[-2:]]
    left = inside.notices.leaving(stay)
    inside.collector.impose(stay, "guard")
    notice = inside.notices.notice_of(left)
    assert notice is not None
    inside.notices.show(notice)
    assert [m.message_id for m in session.history] == [
        before[0].message_id,
        before[-2].message_id,
        notice.message_id,
        before[-1].message_id,
    ]
    assert handles_in(notice.text()) == left
    read = [str(session.read(handle)) for handle in left]
    assert all(m.text() in text for m, text in zip(before[1:-2], read, strict=True))
    assert inside.notices.leaving(session.history) == []


def test_a_digest_that_leaves_hands_its_handles_on() -> None:
    session = _steps(3)
    inside, before = session.inspect(), list(session.history)
    inside.collector.impose(before[2:], "guard")
    notice = inside.notices.notice_of(["s-1", "s-2"])
    assert notice is not None
    inside.notices.show(notice)
    assert inside.notices.leaving([m for m in session.history if m is not notice]) == ["s-1", "s-2"]
    assert inside.notices.leaving(session.history[1:]) != []


def test_without_a_way_back_nothing_is_told() -> None:
    session = Session(50_000, store="memory:", recall_call=None)
    session.append({"role": "user", "content": "ask"})
    assert session.inspect().notices.notice_of(["s-1"]) is None
    assert _steps(1).inspect().notices.notice_of([]) is None


def test_only_what_is_out_is_told_and_once() -> None:
    session = _steps(4)
    inside, before = session.inspect(), list(session.history)
    left = inside.notices.leaving(before[-2:])
    inside.collector.impose(before[-2:], "guard")
    session.recall(left[0])
    session.delete([left[1]], confirm=True)
    notice = inside.notices.notice_of([*left, *left])
    assert notice is not None
    assert handles_in(notice.text()) == left[2:]
    assert notice.text().startswith(f"[ctxgc: {len(left) - 2} older steps")
    inside.notices.show(notice)
    assert inside.notices.notice_of(left) is None


def test_a_step_that_was_recalled_is_not_told_as_moved_out_by_the_next_recovery() -> None:
    session = Session(10_000, store="memory:", plugin="gc_truncate", recall_call=RECALL_CALL)
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
    assert [h for h in told_now if session.inspect().heap.get(h).message_id in here] == []


def _refused(session: Session, share: float) -> Overflow:
    size = session.usage().total_tokens
    return Overflow(kind="tokens", used=size, limit=int(size * share))


def _told(session: Session) -> list[str]:
    notices = (m for m in session.history if m.origin == "gc_notice")
    return [handle for notice in notices for handle in handles_in(notice.text())]


def test_the_handle_of_a_digest_gives_the_texts_of_the_whole_group_that_left() -> None:
    """A model opens a handle with `read`: the arguments of a call alone would not tell what it found."""
    session = _steps(1)
    calls = [
        {
            "id": name,
            "type": "function",
            "function": {"name": "get", "arguments": f'{{"of":"{name}"}}'},
        }
        for name in ("a", "b")
    ]
    ids = session.append({"role": "assistant", "content": None, "tool_calls": calls})
    results = [
        session.append({"role": "tool", "tool_call_id": name, "content": f"limit of {name}: 12"})
        for name in ("a", "b")
    ]
    session.append({"role": "user", "content": "and now?"})
    inside, before = session.inspect(), list(session.history)
    stay = [before[0], before[-1]]
    left = inside.notices.leaving(stay)
    inside.collector.impose(stay, "guard")
    assert ids[0] in left
    whole = '{"of":"a"}\n{"of":"b"}\nlimit of a: 12\nlimit of b: 12'
    assert session.read(ids[0], together=True) == whole
    assert session.read(ids[0]) == '{"of":"a"}'
    found = session.read(ids[0], pattern="limit of b", together=True)
    assert found.endswith("limit of b: 12")
    assert [session.read(each[0]) for each in results] == ["limit of a: 12", "limit of b: 12"]
