"""Sessions on one store never see each other: no text, no handle, no checkpoint crosses."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ctxgc import GCConfig, Session
from ctxgc.errors import CheckpointError, CtxgcError, UnknownHandleError
from ctxgc.session import RECALL_CALL, Event
from ctxgc.strategies import GCPlugin, load_gc_plugin
from tests.session.build import filled
from tests.session.random_walk import handles

SESSIONS = 8
LIMIT = 4_000
CONFIG = GCConfig(
    recent_messages=1, recent_user_messages=1, preserve_recent_turns=0, recent_files=0
)


class Talker:
    """One session with a name that only it knows, and all that was ever heard from it."""

    def __init__(self, number: int, store: str) -> None:
        self.number = number
        self.canary = f"canary_{number}_{number * 7919:05}"
        self.store = store
        self.session = self._open()
        self.heard: list[str] = []
        self.steps = 0

    def _open(self) -> Session:
        made = Session(
            LIMIT,
            config=CONFIG,
            store=self.store,
            session_id=f"session-{self.number}",
            recall_call=RECALL_CALL,
        )
        made.events(self._hear)
        return made

    def _hear(self, event: Event) -> None:
        self.heard.append(repr(event))

    def step(self, rng: Random) -> None:
        """Talk, then do one thing that looks into the store."""
        self.talk()
        act = rng.choice((self.collect, self.search, self.checkpoint, self.restart, self.ask))
        self.heard.append(json.dumps(act(), default=str))
        self.heard.append(json.dumps(self.session.view()))

    def talk(self) -> None:
        self.steps += 1
        name = f"c{self.steps}"
        function = {"name": "bash", "arguments": json.dumps({"command": f"run {self.steps}"})}
        calls = [{"id": name, "type": "function", "function": function}]
        rows = "\n".join(f"{self.canary} shared_name row {self.steps} {n}" for n in range(40))
        self.session.extend(
            [
                {"role": "user", "content": f"shared_name please, step {self.steps}"},
                {"role": "assistant", "content": None, "tool_calls": calls},
                {"role": "tool", "tool_call_id": name, "content": rows},
                {"role": "assistant", "content": "done"},
            ]
        )

    def collect(self) -> Any:
        return self.session.collect(800).to_dict()

    def search(self) -> Any:
        return [hit.text for hit in self.session.search("shared_name row canary", limit=50)]

    def checkpoint(self) -> Any:
        return self.session.checkpoint("all of it").to_dict()

    def ask(self) -> Any:
        self.session.append({"role": "user", "content": "what does shared_name hold?"})
        return self.session.messages()

    def restart(self) -> Any:
        self.session.close()
        self.session = self._open()
        return self.session.view()


@pytest.fixture(params=["json", "sqlite"])
def talkers(request: pytest.FixtureRequest, tmp_path: Path) -> list[Talker]:
    """Eight sessions that took turns on one store."""
    store = f"{request.param}:{tmp_path / 'stash'}"
    made = [Talker(number, store) for number in range(SESSIONS)]
    rng = Random(20)
    for _ in range(3):
        for talker in rng.sample(made, SESSIONS):
            talker.step(rng)
    for talker in made:
        talker.session.collect(600)
        talker.heard.append(json.dumps(talker.session.view()))
    return made


def test_no_canary_crosses_and_no_handle_or_checkpoint_of_another_resolves(
    talkers: list[Talker],
) -> None:
    for talker in talkers:
        others = [other for other in talkers if other is not talker]
        assert any(talker.canary in heard for heard in talker.heard)
        foreign = [handle for other in others for handle in handles(other.session)]
        assert foreign
        errors = [str(error.to_dict()) for error in _refusals(talker.session, foreign, others)]
        spoken = "\n".join([*talker.heard, *errors])
        assert [other.canary for other in others if other.canary in spoken] == []
        for other in others:
            hits = talker.session.search(other.canary, limit=100)
            assert [hit for hit in hits if other.canary in hit.text] == []


def _refusals(session: Session, foreign: list[str], others: list[Talker]) -> list[CtxgcError]:
    caught: list[CtxgcError] = []
    for handle in foreign:
        for act in (session.read, session.recall, session.pin):
            with pytest.raises(UnknownHandleError) as error:
                act(handle)
            caught.append(error.value)
    for other in others:
        for info in other.session.checkpoints():
            with pytest.raises(CheckpointError) as refused:
                session.restore(info.checkpoint_id)
            caught.append(refused.value)
    return caught


def test_handles_of_the_same_segment_differ_between_sessions(talkers: list[Talker]) -> None:
    named = [set(handles(talker.session)) for talker in talkers]
    assert all(named)
    assert len(set[str]().union(*named)) == sum(map(len, named))


@pytest.mark.parametrize("name", ["gc_mark_sweep", "gc_budget", "gc_hybrid", "gc_truncate"])
def test_sessions_that_are_given_one_strategy_object_collect_as_if_alone(name: str) -> None:
    def collected(*plugins: GCPlugin) -> tuple[Any, ...]:
        first, *_ = [filled(12 - n, tools=1, plugin=each) for n, each in enumerate(plugins)]
        result = first.collect(1_000)
        texts = {s.text for s in first.segments()}
        found = {first.read(handle) for handle in handles(first)}
        assert found <= texts
        return first.view(), result.success, result.tokens_after, len(found)

    one = load_gc_plugin(name)
    shown, *numbers = collected(one, one)
    alone, *expected = collected(load_gc_plugin(name))
    assert numbers == expected
    assert [message["role"] for message in shown] == [message["role"] for message in alone]
