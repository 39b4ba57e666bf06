"""A context outlives its server, shares its store, and is never half written."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ctxgc.errors import CtxgcError, StoreDamagedError, StoreError, StoreVersionError
from ctxgc.mcp import ContextService, NewSegment
from ctxgc.stores import CENSUS, Drop, MemoryStore, Put, Store, Write
from tests.examples import one_in
from tests.mcp.contexts import everything, filled, log, make, opened, put


def _seen(service: ContextService) -> tuple[Any, ...]:
    """All that a caller can see of a context."""
    listed = service.segments(10_000, 0)["segments"]
    usage = service.usage()
    return [service.segment(s["segment_id"]) for s in listed], usage, service.task({})


@pytest.mark.parametrize("scheme", ["json", "sqlite"])
def test_a_restarted_server_goes_on_where_the_last_one_was(tmp_path: Path, scheme: str) -> None:
    url = f"{scheme}:{tmp_path / 'store'}"
    service = make(url)
    ids = filled(service, 30)
    service.pin([ids[0]], None, pinned=True)
    service.task({"task_id": "t1", "open_files": ["a.py", "b.py:3"]})
    service.prune(ids[1:5])
    service.prune([ids[6]], strategy="delete", confirm=True)
    before = _seen(service)
    plan = service.analyze()["candidates"]
    service.close()
    again = make(url)
    assert _seen(again) == before
    assert again.analyze()["candidates"] == plan
    again.close()


def test_two_servers_on_one_store_see_each_other_at_once(tmp_path: Path) -> None:
    url = f"json:{tmp_path / 'store.json'}"
    one, two = make(url), make(url)
    for number in range(6):
        put((one, two)[number % 2], log(number))
    assert _seen(one) == _seen(two)
    assert one.usage()["segments"]["working"]["segments"] == 6


def test_two_servers_that_write_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    url = f"json:{tmp_path / 'store.json'}"
    services = [make(url), make(url)]

    def write(place: int) -> list[str]:
        return [put(services[place], log(100 * place + number))[0] for number in range(15)]

    with ThreadPoolExecutor(2) as pool:
        ids = [segment_id for found in pool.map(write, range(2)) for segment_id in found]
    assert len(set(ids)) == 30
    assert _seen(services[0]) == _seen(services[1])
    assert services[0].usage()["segments"]["working"]["segments"] == 30


class Racing(MemoryStore):
    """A store in which another server is always a little faster."""

    def __init__(self) -> None:
        super().__init__()
        self.rivals = 0

    def commit(self, session_id: str, writes: Sequence[Write], *, expect: int | None = None) -> int:
        if self.rivals:
            self.rivals -= 1
            rival = Put("events", f"e{self.rivals}", {})
            super().commit(session_id, [rival])
        return super().commit(session_id, writes, expect=expect)


def test_a_change_is_repeated_where_another_server_was_faster() -> None:
    store = Racing()
    service = make(store)
    filled(service, 5)
    store.rivals = 3
    put(service, NewSegment(text="still comes in", name="late"))
    assert store.rivals == 0
    assert make(store).recall("late")["text"] == "still comes in"


class Failing(MemoryStore):
    """A store whose disk is full at times."""

    full = False

    def commit(self, session_id: str, writes: Sequence[Write], *, expect: int | None = None) -> int:
        if self.full:
            raise StoreError("cannot write: no space left", hint="free some space")
        return super().commit(session_id, writes, expect=expect)


def test_a_full_disk_changes_nothing_and_all_goes_on_once_there_is_room() -> None:
    store = Failing()
    service = make(store)
    ids = filled(service, 30)
    before = _seen(service)
    store.full = True
    for change in (
        lambda: service.prune(ids[:3]),
        lambda: put(service, NewSegment(text="new")),
        lambda: service.configure({"batch": 7}),
        lambda: service.pin([ids[0]], None, pinned=True),
        lambda: service.checkpoint("one"),
    ):
        with pytest.raises(StoreError):
            change()
        store.full = False
        assert _seen(service) == before
        store.full = True
    store.full = False
    assert len(service.prune(ids[:3])["stashed"]) == 3


def test_a_context_of_a_newer_version_is_left_alone() -> None:
    store = opened()
    filled(make(store), 5)
    doc = store.get("mcp", "state", "server") or {}
    store.commit("mcp", [Put("state", "server", {**doc, "format": 99})])
    before = everything(store)
    with pytest.raises(StoreVersionError, match="format 99"):
        make(store).usage()
    assert everything(store) == before


@pytest.mark.parametrize("wrong", [{"strategy": "delete"}, {"latest": 3}, {"format": "two"}])
def test_a_damaged_document_of_the_server_is_told_and_left_alone(wrong: dict[str, Any]) -> None:
    store = opened()
    filled(make(store), 5)
    doc = store.get("mcp", "state", "server") or {}
    store.commit("mcp", [Put("state", "server", {**doc, **wrong})])
    before = everything(store)
    with pytest.raises(StoreDamagedError, match="damaged") as caught:
        make(store).usage()
    assert caught.value.hint
    assert everything(store) == before


def test_a_known_context_keeps_its_window_whatever_a_later_server_is_started_with() -> None:
    store = opened()
    first = make(store, limit=1_000)
    put(first, log(1))
    second = make(store, limit=5_000)
    limits = [s.usage()["usage"]["context_limit"] for s in (first, second)]
    second.configure({"context_limit": 3_000})
    limits += [s.usage()["usage"]["context_limit"] for s in (first, second, make(store, limit=9))]
    assert limits == [1_000, 1_000, 3_000, 3_000, 3_000]


class Contexts(RuleBasedStateMachine):
    """Any calls in any order: nothing is lost, nothing is half done, a restart changes nothing."""

    @initialize()
    def start(self) -> None:
        self.store: Store = opened()
        self.service = make(self.store, limit=300)
        self.texts: dict[str, str] = {}
        self.deleted: set[str] = set()

    @rule(number=st.integers(0, 40), words=st.integers(1, 20))
    def ingest(self, number: int, words: int) -> None:
        new = log(number, words)
        (segment_id,) = put(self.service, new)
        self.texts[segment_id] = new.text
        self.deleted.discard(segment_id)

    def _some(self, data: st.DataObject) -> list[str]:
        known = sorted(self.texts.keys() - self.deleted)
        return data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=4, unique=True))

    @precondition(lambda self: self.texts.keys() - self.deleted)
    @rule(data=st.data(), how=st.sampled_from(["stash", "delete", "auto"]), dry=st.booleans())
    def prune(self, data: st.DataObject, how: Any, dry: bool) -> None:
        done = self.service.prune(self._some(data), strategy=how, confirm=True, dry_run=dry)
        self.deleted.update(done.get("deleted", ()))

    @precondition(lambda self: self.texts.keys() - self.deleted)
    @rule(data=st.data(), pinned=st.booleans())
    def pin(self, data: st.DataObject, pinned: bool) -> None:
        try:
            self.service.pin(self._some(data), None, pinned=pinned)
        except CtxgcError as error:
            assert error.code == "invalid_input"  # noqa: PT017 - the quota for pins

    @rule(goal=st.integers(0, 300))
    def collect(self, goal: int) -> None:
        self.service.analyze(dry_run=False, target_tokens=goal)

    @precondition(lambda self: self.texts.keys() - self.deleted)
    @rule(data=st.data())
    def recall(self, data: st.DataObject) -> None:
        for segment_id in self._some(data):
            assert self.service.recall(segment_id)["text"] == self.texts[segment_id]

    @rule()
    def checkpoint_and_restore(self) -> None:
        made = self.service.checkpoint("x")
        before = self.service.usage()["usage"]["tokens"]
        self.service.analyze(dry_run=False, target_tokens=0)
        done = self.service.restore(made["checkpoint_id"])
        assert (done["lost"], self.service.usage()["usage"]["tokens"]) == ([], before)

    @rule()
    def restart(self) -> None:
        before = _seen(self.service)
        self.service = make(self.store, limit=300)
        assert _seen(self.service) == before

    @invariant()
    def nothing_is_lost(self) -> None:
        if not hasattr(self, "service"):
            return
        for segment_id in self.texts.keys() - self.deleted:
            assert self.service.segment(segment_id)["text"] == self.texts[segment_id]
        amounts = self.service.usage()["segments"]
        stored = self.store.load("mcp", "segments")
        assert amounts["working"]["segments"] + amounts["stashed"]["segments"] == len(stored)
        working = sum(doc["tokens"] for _, doc in stored if doc["tier"] == "working")
        assert amounts["working"]["tokens"] == working


TestContexts = Contexts.TestCase
TestContexts.settings = one_in(4, stateful_step_count=20)


def test_a_link_to_what_a_crash_left_deleted_does_not_close_the_context() -> None:
    store = opened()
    service = make(store)
    target, source = put(
        service,
        NewSegment(text="the target", name="t"),
        NewSegment(text="the source", references=("t",)),
    )
    # Stores of before the census do not say how much there should be.
    store.commit("mcp", [Drop("state", CENSUS), Drop("segments", target), Drop("messages", target)])
    again = make(store)
    assert again.segment(source)["references"] == []
    assert again.usage()["segments"]["working"]["segments"] == 1
