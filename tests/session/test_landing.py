"""Where collections land, and that what they say of each message is so."""

from __future__ import annotations

from typing import Any

import pytest

from ctxgc import GCConfig, Session, collect
from ctxgc.session import RECALL_CALL
from tests.strategies.build import rows, step

CHAT = [{"role": "user", "content": "start"}] + [
    message
    for number in range(200)
    for message in (
        {"role": "assistant", "content": f"yes, value_{number}"},
        {"role": "user", "content": f"next {number}"},
    )
]


@pytest.mark.parametrize("notifies", [True, False])
def test_a_chat_of_short_messages_lands_near_its_target(notifies: bool) -> None:
    with Session(4_000, config=GCConfig(notify_on_gc=notifies), store="memory:") as session:
        session.extend(CHAT)
        session.messages()
        (result,) = [r for r in session.gc_history if r.removal_list]
        assert 0.9 * 2_400 <= result.tokens_after <= 2_400


def test_a_long_chat_lands_within_three_points_of_its_target_with_a_small_digest() -> None:
    said = " ".join(f"word{n}" for n in range(60))
    with Session(60_000, store="memory:") as session:
        for number in range(260):
            session.append({"role": "user", "content": f"What about topic {number}? {said}"})
            session.append({"role": "assistant", "content": f"Topic {number} is fine. {said}"})
            session.messages()
        made = [r for r in session.gc_history if r.removal_list]
        digests = [m["content"] for m in session.view() if "[ctxgc" in m["content"]]
        assert made
        assert len(digests) == 1
        assert all(57 <= 100 * r.tokens_after / 60_000 <= 63 for r in made)
        assert len(digests[0]) / 4 <= 6_000


@pytest.mark.parametrize(("share", "stays"), [(85, True), (97, False)])
def test_what_is_in_work_stays_until_the_window_is_full(share: int, stays: bool) -> None:
    steps = [message for n in range(10) for message in step(n, rows(f"x{n} part_{n}"))]
    history = [{"role": "user", "content": "Compare all parts."}, *steps]
    with Session(1_000_000, store="memory:") as session:
        session.extend(history)
        tokens = session.usage().total_tokens
    with Session(tokens * 100 // share, store="memory:") as session:
        session.extend(history)
        assert (session.messages() == history) is stays


def test_a_chat_that_is_collected_once_lands_near_its_target() -> None:
    view, result = collect(CHAT, context_limit=4_000, target_tokens=2_400)
    assert 2_300 <= result.tokens_after <= 2_400
    assert len(view) > 250


def _call(number: int, *uses: tuple[str, str]) -> dict[str, Any]:
    calls = [
        {"id": f"c{number}_{n}", "type": "function", "function": {"name": name, "arguments": given}}
        for n, (name, given) in enumerate(uses)
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _result(number: int, place: int, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"c{number}_{place}", "content": text}


def test_each_result_of_a_parallel_batch_has_its_own_reason() -> None:
    read, run = ("Read", '{"file_path": "src/cart.py"}'), ("Bash", '{"command": "pytest -q"}')
    config = GCConfig(auto_recall=False, recent_messages=1, recent_files=0, preserve_recent_turns=0)
    with Session(50_000, config=config, store="memory:") as session:
        session.append({"role": "user", "content": "go"})
        first = [_call(0, read, run), _result(0, 0, rows("cart", 9)), _result(0, 1, rows("t", 9))]
        session.extend(first)
        session.extend([_call(1, read), _result(1, 0, rows("cart", 9) + "\nend")])
        session.extend([_call(2, run), _result(2, 0, rows("t", 9) + "\nend")])
        session.extend(step(9, "ok"))
        total = session.usage().total_tokens
        said = {
            session.inspect().heap.get(c.segment_id).text[:4]: c.evidence.by
            for c in session.plan(total - 200).candidates
            if c.evidence is not None and c.evidence.kind == "superseded"
        }
    results = {text: by for text, by in said.items() if not text.startswith("{")}
    assert set(results.values()) <= {"the read of src/cart.py", "the run of pytest -q"}
    assert len(set(results.values())) == len(results) == 2


def test_an_edit_of_another_file_of_the_same_name_supersedes_nothing() -> None:
    def left(edited: str) -> set[str]:
        with Session(
            200_000, store="memory:", prices="anthropic-5m", recall_call=RECALL_CALL
        ) as session:
            session.append({"role": "user", "content": "Fix the models."})
            for number in range(12):
                session.extend([_call(number, ("Bash", f'{{"command": "make {number}"}}')),
                                _result(number, 0, f"built {number}")])  # fmt: skip
                session.messages()
            session.extend([_call(20, ("Read", '{"file_path": "/repo/api/models.py"}')),
                            _result(20, 0, rows("api", 80))])  # fmt: skip
            session.messages()
            given = f'{{"file_path": "{edited}", "old_string": "a", "new_string": "b"}}'
            session.extend([_call(21, ("Edit", given)), _result(21, 0, "updated")])
            session.messages()
            for number in (22, 23):
                session.extend([_call(number, ("Bash", f'{{"command": "ls {number}"}}')),
                                _result(number, 0, "fine")])  # fmt: skip
                session.messages()
            return {item.why for r in session.gc_history for item in r.removal_list}

    said = left("/repo/api/models.py")
    assert [why for why in said if "the edit of /repo/api/models.py" in why]
    assert not [why for why in left("/repo/web/models.py") if "superseded" in why]


def test_a_task_does_not_keep_what_is_dead_from_being_cut() -> None:
    def sent(task: str | None) -> int:
        with Session(
            200_000, store="memory:", prices="anthropic-5m", recall_call=RECALL_CALL
        ) as session:
            session.set_task(task)
            session.append({"role": "user", "content": "Find the slow module."})
            total = 0
            for number in range(20):
                session.extend([_call(number, ("Bash", f'{{"command": "time run_{number}"}}')),
                                _result(number, 0, "it went on as before\n" * 80)])  # fmt: skip
                session.messages()
                total += session.usage().total_tokens
            return total

    assert sent("T-1") == sent(None)
