"""The price pass: collections for the price alone keep every promise that other collections keep."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ctxgc import Session
from ctxgc.collector import GCTriggerReason, preset
from ctxgc.core import FORMATS, Format, Message, is_tombstone
from ctxgc.errors import StoreError
from ctxgc.invariants import first_difference
from ctxgc.stores import MemoryStore
from tests.collector.agent import LONG, Agent, Json, Step, drive, opened, steps, view_of
from tests.examples import one_in
from tests.fakes import Clock
from tests.session.build import events_of, state_of
from tests.session.random_walk import faults

ROOT = Path(__file__).parents[2]
few = one_in(8)
_HANDLE = re.compile(r'context_recall\(handle="([^"]+)"\)')


def shown(session: Session) -> dict[str, Message]:
    return {message.message_id: message for message in session.history}


def stubs(session: Session) -> list[Message]:
    return [m for m in session.history if any(is_tombstone(p.text) for p in m.parts)]


def results(view: list[Json]) -> list[str]:
    return [m["content"] for m in view if m["role"] == "tool"]


@few
@given(steps(), st.sampled_from(FORMATS))
def test_between_collections_each_view_extends_the_last(work: list[Step], format_: Format) -> None:
    session = opened()
    counts: list[int] = []
    views = drive(
        session,
        work,
        Agent(format_),
        each=lambda _: counts.append(len(session.inspect().log.applied)),
    )
    for number in range(1, len(views)):
        is_same = views[number][: len(views[number - 1])] == views[number - 1]
        assert is_same == (counts[number] == counts[number - 1])
    assert faults(session) == []


@few
@given(steps(), st.sampled_from(FORMATS))
def test_only_results_change_and_only_by_lines_that_leave(
    work: list[Step], format_: Format
) -> None:
    session, whole = opened(), opened(plugin="gc_none")
    drive(session, work, Agent(format_))
    drive(whole, work, Agent(format_))
    for now, original in zip(session.history, whole.history, strict=True):
        pairs = zip(now.parts, original.parts, strict=True)
        for part, came in pairs:
            if part.text != came.text:
                assert part.kind == "tool_result"
                assert _verbatim(part.text) <= set(came.text.split("\n"))


def _verbatim(text: str) -> set[str]:
    """The lines of a shortened text that are not ours."""
    ours = ("[ctxgc", "Names: ")
    return {line for line in text.split("\n") if line != "…" and not line.startswith(ours)}


@few
@given(steps(), st.booleans())
def test_a_session_is_never_dearer_than_the_guard_allows(
    work: list[Step], trims_calls: bool
) -> None:
    session, guard = opened(plugin_config={"trim_calls": trims_calls}), preset("default").guard
    drive(session, [*work, *LONG])
    savings = session.inspect().state.savings.savings
    largest = 1.25 * max(session.usage().total_tokens, 1)
    assert savings.bill <= (1 + guard) * savings.counterfactual_bill + 0.01 * largest


@few
@given(steps(), st.integers(0, 10))
def test_what_is_pinned_never_changes(work: list[Step], place: int) -> None:
    session = opened()
    drive(session, work[:6])
    kept = [m for m in session.history if not is_tombstone(m.parts[0].text)]
    pinned = kept[min(place, len(kept) - 1)]
    session.pin(pinned.message_id)
    drive(session, [*work[6:], *LONG])
    assert shown(session)[pinned.message_id] is pinned


@pytest.mark.parametrize("format_", FORMATS)
def test_the_handle_in_a_stub_gives_the_same_bytes_back(format_: Format) -> None:
    session, whole = opened(), opened(plugin="gc_none")
    drive(session, LONG * 2, Agent(format_))
    drive(whole, LONG * 2, Agent(format_))
    texts = [part.text for m in whole.history for part in m.parts]
    handles = [h for m in stubs(session) for p in m.parts for h in _HANDLE.findall(p.text)]
    assert len(handles) > 3
    for handle in handles:
        assert session.read(handle) in texts
    segment = session.recall(handles[0])
    back = shown(session)[str(segment.message_id)]
    assert segment.text in [part.text for part in back.parts]
    assert faults(session) == []


def test_results_in_one_message_leave_one_by_one() -> None:
    """Anthropic puts the results of a batch into one message."""
    session = opened()
    drive(session, [("both", 0, 0, 60), ("test", 30), *LONG], Agent("anthropic"))
    batch = [m for m in session.history if len(m.results()) == 2]
    assert batch
    assert all(part.kind == "tool_result" for m in batch for part in m.parts)
    assert any(is_tombstone(part.text) for m in batch for part in m.parts)


def test_a_result_with_an_image_is_left_alone() -> None:
    session, agent = opened(), Agent("anthropic")
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}}
    said, back = agent.step(("read", 0, 0, 60))
    back[0]["content"][0]["content"].append(image)
    session.extend([*agent.begin(), *said, *back], format="anthropic")
    picture = session.history[-1]
    drive(session, LONG, agent)
    assert len(session.inspect().log.applied) > 1
    assert shown(session)[picture.message_id] is picture


def _letters(number: int) -> str:
    letters = (chr(65 + (number * 7 + place * place) % 26) for place in range(14))
    return f"{''.join(letters)}{2 + number % 6}{2 + number // 6 % 6}"


class Served(Agent):
    """An agent whose provider runs code for it; such results are the provider's own."""

    def step(self, step: Step) -> tuple[list[Json], list[Json]]:
        said, back = super().step(step)
        if step[0] == "test":
            ran = {"type": "code_execution_result", "stdout": view_of(2, 0, 60), "return_code": 0}
            name = f"served_{self._number}"
            said[0]["content"][:0] = [
                {"type": "server_tool_use", "id": name, "name": "code_execution", "input": {}},
                {"type": "code_execution_tool_result", "tool_use_id": name, "content": ran},
            ]
        return said, back


def test_a_result_that_the_provider_made_is_left_alone_and_nothing_is_collected_for_it() -> None:
    session, agent = opened(), Served("anthropic")
    drive(session, LONG, agent)
    served = [m for m in session.history if "served_" in str(m.data)]
    assert len(served) > 5
    ran = [m.data["content"][1]["content"]["stdout"] for m in served]
    assert ran == [view_of(2, 0, 60)] * len(served)
    assert all(result.items_collected for result in session.gc_history)
    thrift = session.plugin.price_collector
    assert thrift is not None
    assert all(not thrift._reader.items_of(m.message_id) for m in served)


class Careless(Agent):
    """An agent whose every output holds a key of its own."""

    def step(self, step: Step) -> tuple[list[Json], list[Json]]:
        said, back = super().step(step)
        for message in back:
            message["content"] += f"\naws_access_key_id = AKIA{_letters(self._number)}"
        return said, back


@pytest.mark.parametrize(("secrets", "is_shown"), [("mask", False), ("mark", True)])
def test_stubs_show_no_secret_where_secrets_are_masked(secrets: str, is_shown: bool) -> None:
    session = opened(secrets=secrets)
    drive(session, LONG * 2, Careless())
    texts = [part.text for message in stubs(session) for part in message.parts]
    assert len(texts) > 3
    assert any(re.search(r"AKIA[A-Z]{14}\d\d", text) for text in texts) == is_shown


def test_a_result_that_the_view_shows_already_comes_in_without_it() -> None:
    session = opened()
    told = events_of(session)
    views = drive(session, [("read", 0, 0, 30), ("say", "orchard"), ("read", 0, 0, 32)])
    *_, last = results(views[-1])
    assert last.startswith("[ctxgc = 30 lines of the earlier Read result")
    assert last.endswith(view_of(0, 30, 2))
    assert views[-1][: len(views[-2])] == views[-2]
    assert [e.kind for e in told if e.kind in ("deduplicated", "collected")] == ["deduplicated"]


@pytest.mark.parametrize("tool", ["context_recall", "mcp__ctxgc__context_recall", "fetch_again"])
def test_the_answer_to_a_recall_comes_whole_though_the_view_shows_its_lines(tool: str) -> None:
    session = opened()
    drive(session, [("read", 0, 0, 30), ("say", "orchard")])
    whole = view_of(0, 0, 30)
    call = {"name": tool, "arguments": '{"handle": "s-3"}'}
    asked = [{"id": "r1", "type": "function", "function": call}]
    session.append({"role": "assistant", "tool_calls": asked})
    session.append({"role": "tool", "tool_call_id": "r1", "content": whole})
    assert results(session.messages())[-1] == whole


class FailingStore(MemoryStore):
    """A store that can be told to refuse what is written."""

    fails = False

    def commit(self, *arguments: Any, **options: Any) -> Any:
        if self.fails:
            raise StoreError("the disk is full")
        return super().commit(*arguments, **options)


@pytest.mark.parametrize("number", range(4, 12))
def test_a_store_that_fails_leaves_all_as_it_was_and_the_next_request_works(number: int) -> None:
    store = FailingStore()
    session, other, agent = opened(store=store), opened(), Agent()
    drive(session, LONG[:number], agent)
    drive(other, LONG[:number])
    session.extend([m for each in agent.step(("test", 40)) for m in each])
    session.flush()
    before = state_of(session)
    store.fails = True
    try:
        session.inspect().price_pass.cut_for_price()
    except StoreError:
        assert state_of(session) == before
    else:
        assert len(session.inspect().log.applied) == len(other.inspect().log.applied)
    store.fails = False
    assert faults(session) == []
    drive(session, LONG, agent)
    assert faults(session) == []
    assert len(session.inspect().log.applied) > len(other.inspect().log.applied)


def test_a_continued_session_goes_on(tmp_path: Path) -> None:
    store, agent = f"json:{tmp_path / 'stash.json'}", Agent()
    with opened(store=store, session_id="long") as session:
        drive(session, LONG, agent)
        before, collections = session.view(), len(session.inspect().log.applied)
    with opened(store=store, session_id="long") as session:
        assert session.view() == before
        drive(session, LONG, agent)
        assert len(stubs(session)) > 0
        assert len(session.inspect().log.applied) > collections
        assert faults(session) == []


@few
@given(steps(), st.lists(st.sampled_from(["undo", "recall", "restore", "sync"]), max_size=3))
@example(
    [*[("read", 0, 0, 1)] * 2, ("read", 0, 1, 35), ("both", 0, 0, 1), ("test", 1), ("edit", 0, 0)],
    ["undo", "restore", "undo"],
)
def test_thrift_stays_in_step_with_whatever_else_changes_the_view(
    work: list[Step], others: list[str]
) -> None:
    session, agent = opened(), Agent()
    drive(session, work, agent)
    checkpoint = session.checkpoint("here")
    for other in others:
        _disturb(session, other, checkpoint.checkpoint_id)
        drive(session, LONG[:8], agent)
        assert faults(session) == []
        thrift = session.plugin.price_collector
        assert thrift is not None
        reader = thrift._reader
        assert [reader.known[m.message_id].message for m in session.history] == session.history
        assert len(reader.known) == len(session.history)


def _disturb(session: Session, what: str, checkpoint_id: str) -> None:
    if what == "undo" and session.inspect().log.applied:
        session.undo()
    elif what == "recall" and (found := stubs(session)):
        handle = _HANDLE.findall(str([part.text for part in found[0].parts]))
        session.recall(handle[0])
    elif what == "restore":
        session.restore(checkpoint_id)
    elif what == "sync":
        session.sync(session.view())


def test_what_is_sent_beside_the_messages_stays_cached_when_the_view_changes() -> None:
    plain, heavy = opened(), opened()
    heavy.set_system("word " * 40_000)
    drive(plain, LONG)
    drive(heavy, LONG)
    assert len(heavy.inspect().log.applied) > 0
    savings, beside = (
        heavy.inspect().state.savings.savings,
        heavy.inspect().accounting.beside_tokens(),
    )
    paid_beside = beside * (1.25 + 0.1 * (savings.requests - 1))
    messages = savings.bill - paid_beside
    assert messages < plain.inspect().state.savings.savings.counterfactual_bill


def test_a_collection_for_the_price_says_what_it_wins_and_when_it_has_paid() -> None:
    session = opened()
    drive(session, LONG)
    (*_, last) = session.gc_history
    assert last.trigger_reason is GCTriggerReason.PRE_MESSAGE
    assert last.details["tokens_won"] == last.tokens_freed > 0
    assert last.details["requests_to_pay_back"] >= 0
    kinds = {item.evidence.kind for item in last.removal_list if item.evidence is not None}
    assert kinds <= {"idle", "superseded", "copy"}
    assert last.details["why"].items() <= {(i.child_key, i.why) for i in last.removal_list}


@pytest.mark.parametrize("is_cold", [False, True])
def test_only_what_the_provider_has_cached_counts_as_written_anew(is_cold: bool) -> None:
    clock = Clock()
    session = opened(clock=clock)
    sent: list[list[Message]] = []
    seen: list[tuple[int, int]] = []

    def look(_: object) -> None:
        now, tokens = session.history, session.inspect().accounting.tokens
        if sent and len(session.gc_history) > len(seen):
            first = first_difference(sent[-1], now[: len(sent[-1])])
            cached = 0 if is_cold else sum(map(tokens, now[first : len(sent[-1])]))
            seen.append((session.gc_history[-1].details["tokens_rewritten"], cached))
        sent.append(now)
        clock.wait(minutes=10 if is_cold else 0)

    drive(session, LONG, each=look)
    assert [said for said, _ in seen] == [cached for _, cached in seen]
    assert len(seen) > 1


@pytest.mark.parametrize(
    "options",
    [{"auto_trigger": False}, {"plugin_config": {"preset": "off"}}, {"plugin": "gc_truncate"}],
)
def test_it_can_be_switched_off(options: Json) -> None:
    session = opened(**options)
    views = drive(session, LONG)
    assert len(session.inspect().log.applied) == 0
    assert results(views[-1])[0] == view_of(0, 0, 60)


_DIGEST = """
from hashlib import sha256
from tests.collector.agent import LONG, drive, opened
session = opened(handle_key=b"the same")
print(sha256(str(drive(session, LONG * 3)).encode()).hexdigest(), len(session.inspect().log.applied))
"""


def test_decisions_are_the_same_under_any_hash_seed() -> None:
    said = {
        subprocess.run(
            [sys.executable, "-c", _DIGEST],
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            encoding="utf-8",
            check=True,
        ).stdout
        for seed in ("0", "1", "77")
    }
    assert len(said) == 1
    assert int(said.pop().split()[1]) > 5
