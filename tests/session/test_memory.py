"""What is stashed does not stay in memory, and is the same when it is asked for again."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path

from ctxgc.session import Session
from ctxgc.session.archive import Archive
from tests.fakes import Clock, WordCounter
from tests.session.build import make

RESULT = 40_000
CALLS = 120


def log_of(number: int) -> str:
    return "\n".join(f"line {line} of run {number}" for line in range(RESULT // 20))


def worked(path: Path) -> Session:
    """Return a session that read many long results, nearly all of which have left its view."""
    session = make(
        30_000, "gc_truncate", store=f"sqlite:{path}", session_id="long", preserve_recent_turns=1
    )
    for number in range(CALLS):
        call = {"name": "bash", "arguments": f'{{"command": "run {number}"}}'}
        made = {"id": f"call_{number}", "type": "function", "function": call}
        session.append({"role": "user", "content": f"Go on with {number}."})
        session.append({"role": "assistant", "content": None, "tool_calls": [made]})
        content = log_of(number)
        session.append({"role": "tool", "tool_call_id": f"call_{number}", "content": content})
        session.messages()
    session.flush()
    return session


def archives() -> list[Archive]:
    """Return what is alive of the sessions of this process."""
    gc.collect()
    return [each for each in gc.get_objects() if isinstance(each, Archive)]


def test_stashed_texts_do_not_stay_in_memory(tmp_path: Path) -> None:
    tracemalloc.start()
    try:
        session = worked(tmp_path / "store.db")
        stashed = [s for s in session.segments() if s.tier == "stashed"]
        size = sum(len(s.text) for s in stashed)
        gc.collect()
        in_use = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert size > CALLS * RESULT // 2
    assert in_use < size / 2, (in_use, size)
    assert session.gc_history


def test_what_is_not_in_memory_is_read_searched_recalled_and_undone_as_it_was(
    tmp_path: Path,
) -> None:
    session = worked(tmp_path / "store.db")
    (first,) = [s for s in session.segments() if s.text == log_of(0)]
    assert first.tier == "stashed"
    assert session.read(first.segment_id) == log_of(0)
    assert session.recall(first.segment_id).text == log_of(0)
    assert any(m.get("content") == log_of(0) for m in session.view())
    before = session.view()
    session.collect(0)
    assert session.view() != before
    session.undo()
    assert session.view() == before


def test_a_reopened_session_reads_what_it_stashed_from_the_store(tmp_path: Path) -> None:
    worked(tmp_path / "store.db").close()
    again = Session(
        30_000, store=f"sqlite:{tmp_path / 'store.db'}", session_id="long", plugin="gc_truncate",
        counter=WordCounter(), clock=Clock(),
    )  # fmt: skip
    stashed = {s.text for s in again.segments() if s.part == "tool_result" and s.tier == "stashed"}
    assert {log_of(number) for number in range(CALLS - 5)} <= stashed


def test_a_closed_session_is_let_go_of_with_all_that_it_read_from_its_store(tmp_path: Path) -> None:
    worked(tmp_path / "store.db").close()
    others = {id(each) for each in archives()}
    for _ in range(2):
        again = make(30_000, "gc_none", store=f"sqlite:{tmp_path / 'store.db'}", session_id="long")
        assert "stashed" in {segment.tier for segment in again.segments()}
        again.close()
        del again
    assert {id(each) for each in archives()} <= others
