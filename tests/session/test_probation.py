"""Probation: a collection waits for some steps, and what is used meanwhile stays."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc import GCConfig, GCResult, Session
from ctxgc.collector import Certificate, NotedUse, Probation
from ctxgc.config import load_config
from ctxgc.core import FORMATS, RECALL_CALL, Format, Message, is_tombstone
from ctxgc.errors import StoreError
from ctxgc.stores import MemoryStore
from tests.collector.agent import (
    FIXED,
    LONG,
    Agent,
    Json,
    Step,
    Tool,
    drive,
    opened,
    steps,
    view_of,
)
from tests.examples import one_in
from tests.fakes import QuarterCounter
from tests.session.build import Flaky
from tests.session.random_walk import faults

few = one_in(8)
SHORT = {"patience": 0.0, "least_names": 0, "shares": {"idle": [0.05, 0.02]}}
WAITS = {"constants": {**FIXED["constants"], **SHORT}, "probation": 2}
"""A session that collects often, two steps after it planned to."""
AWAY: list[Step] = [("read", 9, 0, 40), ("read", 8, 0, 40), ("read", 7, 0, 40), ("read", 6, 0, 40)]


FILES: list[Tool] = [
    ("Read", {"file_path": f"src/file_{path}.py"}, view_of(path, 0, 60)) for path in range(4)
]


def waiting(**options: Any) -> Session:
    return opened(**{"plugin_config": WAITS, **options})


def plan_of(session: Session) -> Probation | None:
    return session.inspect().state.probation


def certificates(session: Session) -> list[Certificate]:
    return [r.certificate for r in session.gc_history if r.certificate is not None]


def planned(session: Session, agent: Agent) -> Probation:
    """Let an agent work until something is planned."""
    session.extend(agent.begin() if not session.history else [])
    session.extend([m for said in agent.calls(FILES) for m in said])
    for _ in range(30):
        if (plan := plan_of(session)) is not None:
            return plan
        think(session)
    raise AssertionError("nothing was planned")


def think(session: Session, text: str = "I think.") -> None:
    """Let the agent say something, and ask again."""
    session.extend([{"role": "assistant", "content": text}, Agent().user("Go on.")])
    session.messages()


# -- a naive judge -----------------------------------------------------------------------------------


class Witness:
    """Writes down every request: what it carried, and what it had come to."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.views: list[list[Message]] = []
        self.counts: list[int] = []

    def __call__(self, _: int) -> None:
        self.views.append(self._session.history)
        self.counts.append(len(self._session.gc_history))

    def shortened(self, certificate: Certificate) -> dict[tuple[str, int], str]:
        """What was shown before a collection and not after it, part by part."""
        after = _parts(self.views[certificate.applied_at - 1])
        before = _parts(self.views[certificate.applied_at - 2])
        return {place: text for place, text in before.items() if after.get(place) != text}

    def answers(self, certificate: Certificate) -> Iterator[tuple[str, list[Message]]]:
        """Each answer that came in while a plan waited, and the view that it answered."""
        for request in range(certificate.planned_at, certificate.applied_at):
            old, new = self.views[request - 1 : request + 1]
            known = {m.message_id for m in old}
            said = [m for m in new if m.message_id not in known and m.role == "assistant"]
            yield "\n".join(part.text for m in said for part in m.parts), old


def _parts(view: list[Message]) -> dict[tuple[str, int], str]:
    return {(m.message_id, n): part.text for m in view for n, part in enumerate(m.parts)}


def _quoted(gone: Mapping[tuple[str, int], str], said: str, view: list[Message]) -> set[str]:
    """The names in an answer that only what left had in the view that it answered."""
    stays = "\n".join(text for place, text in _parts(view).items() if place not in gone)
    return _names(said) & _names("\n".join(gone.values())) - _names(stays)


def _names(text: str) -> set[str]:
    return set(re.findall(r"\bload_\d+_\d+\b", text))


@few
@given(steps(), st.sampled_from(FORMATS))
def test_nothing_leaves_that_was_used_since_it_was_planned(
    work: list[Step], format_: Format
) -> None:
    session = waiting()
    witness = Witness(session)
    drive(session, [*work, *LONG], Agent(format_), each=witness)
    for found in certificates(session):
        assert found.waited >= found.steps == 2
        assert found.applied_at >= found.planned_at + found.steps
        gone = witness.shortened(found)
        assert {message_id for message_id, _ in gone} == set(found.left)
        assert gone.keys().isdisjoint((use.message_id, use.part) for use in found.used)
        for said, view in witness.answers(found):
            assert _quoted(gone, said, view) == set()
    assert faults(session) == []


@few
@given(steps(), st.sampled_from(FORMATS))
def test_between_collections_each_view_extends_the_last(work: list[Step], format_: Format) -> None:
    session = waiting()
    witness = Witness(session)
    views = drive(session, [*work, *LONG], Agent(format_), each=witness)
    for (old, new), (before, after) in zip(pairwise(views), pairwise(witness.counts), strict=True):
        assert (new[: len(old)] == old) == (before == after)


@few
@given(steps())
def test_the_same_work_leads_to_the_same_certificates(work: list[Step]) -> None:
    one, other = waiting(), waiting()
    assert drive(one, [*work, *LONG]) == drive(other, [*work, *LONG])
    assert _by_place(one) == _by_place(other)


def _by_place(session: Session) -> list[Json]:
    """The certificates of a session, with places in the view for the ids of messages."""
    places = {m.message_id: n for n, m in enumerate(session.history)}
    return [
        {
            **msgspec.to_builtins(found),
            "left": [places[name] for name in found.left],
            "used": [
                (places[use.message_id], use.how, use.quoted, use.missed) for use in found.used
            ],
        }
        for found in certificates(session)
    ]


# -- use ---------------------------------------------------------------------------------------------


def test_a_plan_that_nothing_uses_is_carried_out_after_its_steps() -> None:
    session, agent = waiting(), Agent()
    plan = planned(session, agent)
    for _ in range(2):
        assert session.gc_history == []
        think(session)
    (found,) = certificates(session)
    assert found == Certificate(
        planned_at=plan.planned_at,
        applied_at=plan.planned_at + 2,
        steps=2,
        waited=2,
        planned=plan.planned,
        left=found.left,
    )
    assert set(found.left) == {each.message_id for each in plan.exits}
    assert plan_of(session) is None


def test_asking_twice_is_not_a_step() -> None:
    session, agent = waiting(), Agent()
    plan = planned(session, agent)
    for _ in range(5):
        session.messages()
    assert plan_of(session) == plan
    assert session.gc_history == []


def _shown(session: Session, message_id: str) -> str:
    (text,) = [m.parts[0].text for m in session.history if m.message_id == message_id]
    return text


def _hidden_name(session: Session, message_id: str) -> str:
    """A name that only this message has."""
    (message,) = [m for m in session.history if m.message_id == message_id]
    others = "\n".join(p.text for m in session.history if m is not message for p in m.parts)
    names = re.findall(r"\bload_\d+_\d+\b", message.parts[0].text)
    return next(name for name in reversed(names) if name not in others)


def _view_in(plan: Probation, session: Session, text: str) -> str:
    """The message of a plan that shows this text."""
    return next(e.message_id for e in plan.exits if _shown(session, e.message_id) == text)


def test_what_is_quoted_stays_and_is_written_down() -> None:
    session, agent = waiting(), Agent()
    plan = planned(session, agent)
    used = _view_in(plan, session, view_of(1, 0, 60))
    name = _hidden_name(session, used)
    think(session, f"It is {name}.")
    now = plan_of(session)
    assert now is not None
    assert [e.message_id for e in now.exits] == [
        e.message_id for e in plan.exits if e.message_id != used
    ]
    use = NotedUse(
        message_id=used, part=0, request=plan.planned_at, how="quoted", quoted=(name,), missed=(name,)
    )  # fmt: skip
    assert now.used == (use,)
    think(session)
    (found,) = certificates(session)
    assert found.used == (use,)
    assert found.missed == (name,)
    assert used not in found.left
    assert _shown(session, used) == view_of(1, 0, 60)
    assert "\n".join(found.described()) == (
        f"planned at request {plan.planned_at}, waited 2 of 2 steps, applied at request {found.applied_at}\n"
        f"of {plan.planned} planned, 1 were used meanwhile and stayed\n"
        f"  message {used}: quoted (1) by the answer to request {plan.planned_at}\n"
        f"would have been missed: {name}"
    )


@pytest.mark.parametrize(
    ("step", "how"), [(("edit", 1, 3), "named"), (("read", 1, 0, 60), "read again")]
)
def test_a_file_that_a_call_names_or_reads_again_stays(step: Step, how: str) -> None:
    session, agent = waiting(), Agent()
    plan = planned(session, agent)
    used = _view_in(plan, session, view_of(1, 0, 60))
    drive(session, [step], agent)
    now = plan_of(session)
    assert now is not None
    assert [(use.message_id, use.how) for use in now.used] == [(used, how)]


def test_a_secret_that_is_quoted_is_not_written_down() -> None:
    session, agent = waiting(), Agent()
    secret = "ghp_" + "a1B2" * 9
    config = "\n".join(f"setting_{n} = value_{n}_{n * 7}" for n in range(40))
    call, back = agent.step(("read", 5, 0, 1))
    session.extend([*agent.begin(), *call])
    session.extend([{**back[0], "content": f"{config}\ntoken = {secret}"}])
    plan = planned(session, agent)
    think(session, f"The token is {secret}")
    assert plan_of(session) != plan
    assert secret not in str(msgspec.to_builtins(plan_of(session)))


# -- room, undo, restart -----------------------------------------------------------------------------


def test_room_that_must_be_made_ends_the_wait_and_the_certificate_says_so() -> None:
    session = Session(
        9_000, store="memory:", counter=QuarterCounter(), prices="anthropic-5m", recall_call=RECALL_CALL,
        config=GCConfig(auto_recall=False, plugin_config=WAITS | {"probation": 50}),
    )  # fmt: skip
    drive(session, [*LONG, *AWAY])
    found = certificates(session)
    assert found
    assert {each.at_once for each in found} == {"room"}
    assert all(each.waited < each.steps == 50 for each in found)
    assert "applied at once: room" in next(found[0].described())
    assert faults(session) == []


def test_a_collection_by_hand_ends_the_wait() -> None:
    rules = {"recent_messages": 1, "recent_user_messages": 1, "recent_files": 0}
    session, agent = waiting(**rules), Agent()
    plan = planned(session, agent)
    result = session.collect(session.usage().total_tokens // 2)
    assert result.certificate is not None
    assert (result.certificate.planned_at, result.certificate.at_once) == (
        plan.planned_at,
        "by hand",
    )
    assert plan_of(session) is None


def test_an_undo_ends_a_plan_that_was_made_for_another_view() -> None:
    session, agent = waiting(), Agent()
    planned(session, agent)
    while not certificates(session):
        think(session)
    planned(session, agent)
    session.undo()
    assert plan_of(session) is None


def test_a_plan_waits_on_after_a_restart() -> None:
    store, agent = MemoryStore(), Agent()
    session = waiting(store=store, session_id="work")
    plan = planned(session, agent)
    think(session)
    before = plan_of(session)
    assert before is not None
    assert before.waited == 1
    session.close()
    again = waiting(store=store, session_id="work")
    assert plan_of(again) == before
    think(again)
    (found,) = certificates(again)
    assert (found.planned_at, found.waited) == (plan.planned_at, 2)
    assert set(found.left) == {each.message_id for each in plan.exits}
    again.close()
    last = waiting(store=store, session_id="work")
    assert certificates(last) == [found]
    assert GCResult.from_dict(last.gc_history[-1].to_dict()) == last.gc_history[-1]


def test_a_failing_store_leaves_the_plan_as_it_was() -> None:
    store, agent = Flaky(), Agent()
    session = waiting(store=store)
    planned(session, agent)
    think(session)
    before = plan_of(session)
    session.extend([{"role": "assistant", "content": "I think."}, agent.user("Go on.")])
    store.fail_next()
    with pytest.raises(StoreError):
        session.messages()
    assert plan_of(session) == before
    session.messages()
    assert len(certificates(session)) == 1


# -- options -----------------------------------------------------------------------------------------


def test_the_preset_can_be_chosen_in_code_in_a_file_and_in_the_environment(tmp_path: Path) -> None:
    chosen = {"preset": "proven"}
    file = tmp_path / "gc.json"
    file.write_bytes(msgspec.json.encode({"plugin_config": chosen}))
    configs = (
        GCConfig(plugin_config=chosen),
        load_config(file, env={}),
        load_config(env={"CTXGC_PLUGIN_CONFIG": '{"preset": "proven"}'}),
    )
    for config in configs:
        session = Session(
            200_000, store="memory:", config=config, prices="anthropic-5m", recall_call=RECALL_CALL
        )
        drive(session, [*LONG, *AWAY * 4])
        assert [found.steps for found in certificates(session)][:1] == [4]


def test_without_probation_no_collection_has_a_certificate() -> None:
    session = opened(plugin_config=FIXED)
    drive(session, LONG)
    assert session.gc_history
    assert certificates(session) == []
    assert "certificate" not in session.gc_history[0].to_dict()
    assert any(is_tombstone(m.parts[0].text) for m in session.history)
