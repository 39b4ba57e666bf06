"""One session behind both doors: the server opens what a Session wrote, and the other way round."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, get_args

import pytest

from ctxgc import Session
from ctxgc.core import Format
from ctxgc.errors import CheckpointError, InputError, PlanError
from ctxgc.mcp import ContextService, NewSegment
from ctxgc.stores import SearchFilters, Store, open_store
from ctxgc.testing import check_history
from tests.fakes import WordCounter, still
from tests.mcp.contexts import everything, filled, log, logs, make, opened, put
from tests.session.random_walk import faults
from tests.strategies.build import turn, words
from tests.wire.histories import random_history

FORMATS: tuple[Format, ...] = get_args(Format)


def session_in(store: str | Store, limit: int | None = None) -> Session:
    """Return the session of the server, as a program opens it."""
    return Session(
        limit,
        store=store,
        session_id="mcp",
        counter=WordCounter(),
        clock=still(),
        plugin="gc_truncate",
    )


def chat(store: str | Store, turns: int = 6, tools: int = 1) -> Session:
    """Return a stored session with so many turns."""
    session = session_in(store, 1_000)
    for number in range(turns):
        session.extend(turn(number, 20, tools=tools))
    session.flush()
    return session


def texts(session: Session) -> list[str]:
    """Return the texts of the view."""
    return [part.text for message in session.history for part in message.parts]


# -- A session in the server


def test_the_server_goes_on_with_a_session() -> None:
    store = opened()
    session = chat(store)
    service = make(store, limit=None)
    size = service.usage()
    assert size["usage"]["context_limit"] == 1_000
    assert size["usage"]["tokens"] == session.usage().total_tokens
    assert service.search("request", SearchFilters(), 5, 0)["hits"]
    handles = {s["segment_id"]: s["handle"] for s in service.segments(100, 0)["segments"]}
    assert handles == {
        s.segment_id: session.inspect().stash.handle(s.segment_id) for s in session.segments()
    }


def test_what_the_server_stashes_leaves_the_view_and_comes_back_by_its_handle() -> None:
    store = opened()
    gone = next(s for s in chat(store).segments() if s.text.startswith("out 2"))
    service = make(store, limit=None)
    done = service.prune([gone.segment_id], strategy="stash")
    call = next(i for i in done["stashed"] if i != gone.segment_id)
    again = session_in(store)
    assert gone.text not in texts(again)
    assert faults(again) == []
    assert again.recall(service.segment(call)["handle"]).segment_id == call
    assert gone.text in texts(again)
    assert faults(again) == []
    again.flush()
    assert service.segment(gone.segment_id)["tier"] == "working"


def test_what_the_server_recalls_is_in_the_view_again() -> None:
    store = opened()
    session = chat(store)
    session.collect(100)
    stashed = next(s for s in session.segments() if s.tier == "stashed" and s.part == "text")
    session.flush()
    make(store, limit=None).recall(stashed.segment_id)
    again = session_in(store)
    assert stashed.text in texts(again)
    assert faults(again) == []


def test_a_note_that_is_put_in_becomes_a_message() -> None:
    store = opened()
    chat(store)
    service = make(store, limit=None)
    (note,) = put(
        service, NewSegment(text="Use cents.", type="decision", name="money", tags=("q3",))
    )
    again = session_in(store)
    assert texts(again)[-1] == "Use cents."
    found = next(s for s in again.segments() if s.segment_id == note)
    assert (found.type, found.name, found.tags) == ("decision", "money", ("q3",))
    assert again.read("money") == "Use cents."
    assert faults(again) == []
    again.flush()
    assert (
        service.ingest([NewSegment(text="Use cents.", type="decision", name="money")], ())[
            "already_known"
        ]
        == 1
    )


def test_a_note_never_comes_between_a_call_and_its_result() -> None:
    store = opened()
    session = session_in(store, 1_000)
    request, call, result, _ = turn(0, 20, tools=1)
    session.extend([request, call])
    session.flush()
    put(make(store, limit=None), NewSegment(text="by the way"), NewSegment(text="and this"))
    again = session_in(store)
    again.append(result)
    sent = again.messages()
    assert [m["content"] for m in sent][1:3] == ["by the way", "and this"]
    assert not check_history(sent, "openai")


def test_a_summary_of_the_server_is_shown_and_can_be_expanded_there_later() -> None:
    store = opened()
    session = chat(store, tools=0)
    first, second = (s.segment_id for s in session.segments()[2:4])
    service = make(store, limit=None)
    draft = service.draft([first, second], None)
    summary = service.compress(draft, service.summarise(draft, "two answers"))
    again = session_in(store)
    assert "two answers" in texts(again)
    assert faults(again) == []
    again.append({"role": "user", "content": "go on"})
    again.flush()
    assert service.expand(summary["summary_id"])["expanded"] == [first, second]
    last = session_in(store)
    assert "two answers" not in texts(last)
    assert texts(last)[2:4] == texts(session)[2:4]


def test_the_task_and_pins_of_one_door_hold_in_the_other() -> None:
    store = opened()
    session = chat(store)
    session.set_task("T-1")
    session.pin(session.history[4].message_id)
    session.flush()
    service = make(store, limit=None)
    assert service.usage()["task"] == "T-1"
    pinned = session.segments()[4].segment_id
    assert service.prune([pinned], strategy="stash")["kept"] == {pinned: "pinned: unpin it first"}
    service.task({"task_id": "T-2"})
    service.pin([session.segments()[8].segment_id], None, pinned=True)
    again = session_in(store)
    assert again.inspect().state.task_id == "T-2"
    again.collect(0)
    shown = {m.message_id for m in again.history}
    assert {session.history[4].message_id, session.history[8].message_id} <= shown


def test_collections_of_both_doors_are_numbered_in_one_row() -> None:
    store = opened()
    session = chat(store)
    session.collect(300)
    service = make(store, limit=None)
    service.analyze(dry_run=False, target_tokens=100)
    again = session_in(store)
    assert [r.plugin_name for r in again.gc_history] == ["gc_truncate", "mcp"]
    for number in range(10, 16):
        again.extend(turn(number, 20))
    again.collect(150)
    listed = make(store, limit=None).collections(10)
    assert [row["number"] for row in listed["collections"]] == [3, 2, 1]
    assert listed["total"] == 3


def test_a_plan_is_stale_once_the_session_went_on() -> None:
    store = opened()
    chat(store)
    service = make(store, limit=None)
    plan = service.analyze(target_tokens=100)["plan"]["plan_id"]
    session = session_in(store)
    session.append({"role": "user", "content": "news"})
    session.flush()
    with pytest.raises(PlanError, match="changed since"):
        service.prune(plan_id=plan)


def test_what_the_server_deletes_is_gone_with_every_copy_that_the_session_kept() -> None:
    store = opened()
    session = chat(store)
    session.checkpoint("before")
    secret = next(s for s in session.segments() if s.text.startswith("out 2"))
    call = next(s for s in session.segments() if s.call_id == secret.call_id)
    service = make(store, limit=None)
    size = service.usage()["usage"]["tokens"]
    done = service.prune([secret.segment_id], strategy="delete", confirm=True)
    assert sorted(done["deleted"]) == sorted([secret.segment_id, call.segment_id])
    assert done["stashed"] == []
    now = service.usage()
    assert now["usage"]["tokens"] == done["usage"]["after"] < size
    assert now["segments"]["deleted"]["segments"] == 2
    assert secret.text not in json.dumps(everything(store), default=str)
    again = session_in(store)
    assert secret.text not in texts(again)
    assert faults(again) == []


def test_a_stashed_segment_is_deleted_too() -> None:
    store = opened()
    session = chat(store, tools=0)
    session.collect(100)
    stashed = next(s for s in session.segments() if s.tier == "stashed")
    text = stashed.text
    session.flush()
    service = make(store, limit=None)
    done = service.prune([stashed.segment_id], strategy="delete", confirm=True)
    assert (done["deleted"], done["stashed"]) == ([stashed.segment_id], [])
    assert text not in json.dumps(everything(store), default=str)
    assert faults(session_in(store)) == []


def test_a_checkpoint_of_one_door_is_restored_by_the_other() -> None:
    store = opened()
    session = chat(store)
    then = texts(session)
    mine = session.checkpoint("mine").checkpoint_id
    service = make(store, limit=None)
    put(service, NewSegment(text="a note"))
    theirs = service.checkpoint("theirs")["checkpoint_id"]
    done = service.restore(mine)
    assert (done["recalled"], len(done["stashed"]), done["lost"]) == ([], 1, [])
    again = session_in(store)
    assert texts(again) == then
    again.restore(theirs)
    assert texts(again) == [*then, "a note"]
    assert faults(again) == []


# -- A context of the server in a session


def test_a_context_of_the_server_opens_as_a_session() -> None:
    store = opened()
    service = make(store)
    ids = filled(service)
    service.prune([ids[3]], strategy="stash")
    handle = service.segment(ids[3])["handle"]
    session = session_in(store)
    assert session.context_limit == 1_000
    assert len(session.history) == len(ids) - 1
    assert faults(session) == []
    session.recall(handle)
    assert [m.message_id for m in session.history] == ids
    sent = session.messages()
    assert not check_history(sent, "openai")
    assert service.segment(ids[3])["tier"] == "working"
    assert service.usage()["segments"]["working"]["segments"] == len(ids)


def test_provider_messages_of_a_context_are_those_of_its_session() -> None:
    store = opened()
    service = make(store)
    history = turn(0, 10, tools=1)
    done = service.ingest((), history)
    session = session_in(store)
    assert session.messages() == history
    assert [s.segment_id for s in session.segments()] == done["segment_ids"]
    assert faults(session) == []


def test_a_message_that_cannot_come_next_is_kept_as_text() -> None:
    store = opened()
    service = make(store)
    request, _, result, _ = turn(0, 10, tools=1)
    service.ingest((), [request])
    answer = service.ingest((), [result])
    session = session_in(store)
    assert [m.role for m in session.history] == ["user", "user"]
    assert texts(session)[1] == result["content"]
    assert service.segment(answer["segment_ids"][0])["text"] == result["content"]
    assert faults(session) == []


def test_messages_for_the_history_of_a_host_come_in_as_text_and_survive_its_next_sync() -> None:
    store = opened()
    session = session_in(store, 1_000)
    history = turn(0, 20, tools=1)
    session.sync(history)
    session.flush()
    make(store, limit=None).ingest((), turn(7, 10))
    again = session_in(store)
    seen = texts(again)
    again.sync(history)
    assert texts(again) == seen
    assert seen[-2:] == [message["content"] for message in turn(7, 10)]


# -- A context of an older server, which kept segments and no messages


def older(tmp_path: Path) -> str:
    """Return the address of a copy of a store that an older server wrote."""
    kept = Path(__file__).parent / "files" / "context-of-an-older-server.json"
    (tmp_path / "store.json").write_bytes(kept.read_bytes())
    return f"json:{tmp_path / 'store.json'}"


@pytest.mark.parametrize("first", ["server", "session"])
def test_a_context_of_an_older_server_goes_on_as_a_session(first: str, tmp_path: Path) -> None:
    url = older(tmp_path)
    if first == "session":
        with session_in(url) as session:
            assert faults(session) == []
    service = make(url)
    found = service.usage()
    assert (found["task"], found["collections"]) == ("cart", 2)
    assert found["segments"]["deleted"] == {"segments": 1, "tokens": 10}
    assert found["segments"]["pinned"] == 1
    assert service.configure({})["config"]["batch"] == 7
    assert service.task({})["open_files"] == ["cart.py"]
    assert service.recall("money")["text"] == "Use cents, never floats."
    summary = service.search("quiet", SearchFilters(), 5, 0)["hits"][0]["segment_id"]
    assert len(service.expand(summary)["expanded"]) == 2
    service.close()
    with session_in(url) as session:
        assert faults(session) == []
        assert "total = 0.1 + 0.2" in texts(session)
        assert "two quiet logs" not in texts(session)


def test_a_checkpoint_of_an_older_server_is_restored_as_far_as_its_texts_are_there(
    tmp_path: Path,
) -> None:
    service = make(older(tmp_path))
    done = service.restore("early")
    assert len(done["stashed"]) == 1
    assert len(done["lost"]) == 1
    assert service.task({})["task_id"] == "cart"
    with pytest.raises(CheckpointError, match="MCP server"):
        session_in(service._store).restore(done["checkpoint_id"])


# -- Both, in turns


@pytest.mark.parametrize("kind", ["memory", "json", "sqlite"])
@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("seed", range(6))
def test_two_doors_in_turns_lose_nothing(
    kind: str, format_: Format, seed: int, tmp_path: Path
) -> None:
    rng = Random(f"{format_}{seed}")
    store = open_store("memory:" if kind == "memory" else f"{kind}:{tmp_path}/stash")
    seen: dict[str, str] = {}
    for step in range(8):
        service = make(store, limit=None if step else 1_000)
        for segment_id in _work_in_server(rng, service, step):
            seen.pop(segment_id, None)
        session = session_in(store, None if step else 1_000)
        assert faults(session) == []
        with suppress(InputError, PlanError):
            _work_in_session(rng, session, format_)
        session.flush()
        # Notices and stand-ins are about the view and come and go with it.
        lasting = [s for s in session.segments() if s.derived_from is None]
        now = {s.segment_id: s.text for s in lasting if s.source != "enrichment"}
        assert {i: now.get(i) for i in seen} == seen
        seen = now
        assert session.inspect().heap.ledger.balanced()


def _work_in_server(rng: Random, service: ContextService, step: int) -> list[str]:
    """Do some things, and return what was deleted."""
    gone: list[str] = []
    known = [s["segment_id"] for s in service.segments(1_000, 0)["segments"]]
    put(service, *logs(3, 12)[: rng.randint(1, 3)], log(100 + step, 30))
    if not known:
        return gone
    some = rng.sample(known, min(3, len(known)))
    acts: list[Any] = [
        lambda: service.prune(some, strategy="stash"),
        lambda: service.analyze(dry_run=False, target_tokens=rng.randint(20, 400)),
        lambda: service.recall(some[0]),
        lambda: service.pin(some[:1], None, pinned=rng.random() < 0.5),
        lambda: service.compress(*_drafted(service, some)),
        lambda: service.task({"task_id": f"T-{step}"}),
        lambda: gone.extend(
            service.prune(some[:1], strategy="delete", confirm=True).get("deleted", ())
        ),
    ]
    for act in rng.sample(acts, 3):
        with suppress(InputError, PlanError):
            act()
    return gone


def _drafted(service: ContextService, ids: list[str]) -> Any:
    draft = service.draft(ids, None)
    return draft, service.summarise(draft, "in short")


def _work_in_session(rng: Random, session: Session, format_: Format) -> None:
    history = random_history(rng, format_)
    if not session.inspect().view.waiting:
        with suppress(InputError):
            session.extend(history, format=format_)
    session.append({"role": "user", "content": words(20, f"word{rng.random()}")})
    if rng.random() < 0.5:
        session.collect(rng.randint(50, 500))
    for segment in rng.sample(session.segments(), 2):
        with suppress(PlanError):
            session.recall(segment.segment_id)
