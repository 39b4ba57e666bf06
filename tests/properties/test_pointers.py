"""Every note in a view that points at something leads there, whatever was collected."""

from __future__ import annotations

import re
from contextlib import suppress
from random import Random

import pytest

from ctxgc import GCConfig, Session
from ctxgc.core import Evidence, Message, points_back
from ctxgc.errors import ContextOverflowError, PlanError
from ctxgc.session import RECALL_CALL
from ctxgc.stores import open_store
from tests.collector.agent import FIXED, WORDS, Agent, Step, drive, opened
from tests.fakes import Clock, QuarterCounter

_CALL = re.compile(r'context_recall\(handle="([^"]+)"\)')
_DIGEST = re.compile(r"^\[ctxgc: (s-\d+(?: s-\d+)*)\]", re.MULTILINE)


def _work(rng: Random, count: int) -> list[Step]:
    """An agent that looks at the same few files again and again."""
    kinds: list[Step] = []
    for _ in range(count):
        path, first = rng.randint(0, 2), rng.choice((0, 0, 10))
        kinds.append(
            rng.choice(
                (
                    ("read", path, first, rng.choice((30, 60))),
                    ("read", path, first, rng.choice((30, 60))),
                    ("both", path, first, 40),
                    ("test", 40),
                    ("grep", rng.choice(WORDS), 30),
                    ("edit", path, first),
                )
            )
        )
    return kinds


def _check(session: Session, came: dict[str, Message]) -> int:
    """Check every pointer in the view; return how many results leave out what was shown before."""
    found = 0
    for message in session.history:
        for number, part in enumerate(message.parts):
            calls = _CALL.findall(part.text)
            for handle in (*calls, *" ".join(_DIGEST.findall(part.text)).split()):
                assert session.read(handle)
            if points_back(part.text):
                found += 1
                whole = came[message.message_id].parts[number].text
                assert whole in {session.read(handle) for handle in calls}
    return found


@pytest.mark.parametrize("limit", [6_000, 20_000, 200_000])
@pytest.mark.parametrize("seed", range(4))
def test_every_pointer_in_every_view_leads_somewhere(seed: int, limit: int) -> None:
    rng = Random(seed)
    config = GCConfig(auto_recall=False, recent_messages=2, plugin_config=FIXED)
    session = Session(
        limit,
        config=config,
        store="memory:",
        counter=QuarterCounter(),
        clock=Clock(),
        recall_call=RECALL_CALL,
    )
    came: dict[str, Message] = {}
    pointers = 0
    agent = Agent()
    session.extend(agent.begin())
    for step in _work(rng, 40):
        said, back = agent.step(step)
        for message in (*said, *back):
            session.append(message)
            came[session.history[-1].message_id] = session.history[-1]
        with suppress(ContextOverflowError):
            session.messages()
        pointers += _check(session, came)
        if rng.random() < 0.2:
            session.collect(session.usage().total_tokens * rng.randint(3, 9) // 10)
            pointers += _check(session, came)
        if rng.random() < 0.1:
            with suppress(PlanError):
                session.undo()
            pointers += _check(session, came)
    assert pointers or limit < 100_000


def test_a_result_that_its_newer_copy_points_at_is_not_superseded_by_it() -> None:
    session = opened(plugin_config=FIXED)
    others: list[Step] = [("read", 1 + n % 2, 0, 40) for n in range(12)]
    drive(session, [("read", 0, 0, 60), ("test", 40), ("read", 0, 0, 60), *others])
    older, _, newer, *_ = (m for m in session.history if m.results())
    assert points_back(newer.parts[0].text)
    plan = session.plan(session.usage().total_tokens - 300)
    heap = session.inspect().heap
    said = {heap.get(c.segment_id).message_id: c.evidence for c in plan.candidates}
    assert said == {older.message_id: Evidence(kind="unreachable", rule="file in work", requests=7)}


@pytest.mark.parametrize("limit", [6_000, 200_000])
def test_without_a_way_to_recall_nothing_points_at_lines_that_may_leave(limit: int) -> None:
    """A room collection, or a restart, would let their source leave: so all lines stay where they are."""
    rng, store, agent = Random(1), open_store("memory:"), Agent()
    for _ in range(3):
        session = Session(
            limit, config=GCConfig(auto_recall=False, recent_messages=2, plugin_config=FIXED),
            store=store, session_id="s", counter=QuarterCounter(), clock=Clock(), recall_call=None,
        )  # fmt: skip
        drive(session, _work(rng, 30), agent)
        session.close()
        texts = [part.text for message in session.history for part in message.parts]
        assert not any(map(points_back, texts))
