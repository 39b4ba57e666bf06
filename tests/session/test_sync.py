"""sync: the whole history again, and only what is new comes in (P9)."""

from __future__ import annotations

import pytest

from ctxgc.errors import MessageError
from ctxgc.wire import text_message
from tests.collector.agent import LONG, Agent, drive, opened
from tests.session.build import make, requests_in, state_of
from tests.session.random_walk import faults
from tests.strategies.build import turn

STORY = [message for number in range(12) for message in turn(number, tools=1)]


def test_twice_is_once() -> None:
    session = make(4_000)
    assert len(session.sync(STORY)) == len(STORY)
    state = state_of(session)
    assert session.sync(STORY) == []
    assert state_of(session) == state


def test_only_what_is_new_comes_in_also_after_a_collection() -> None:
    session = make(4_000, preserve_recent_turns=2)
    session.sync(STORY)
    session.collect(600)
    view = session.view()
    assert session.sync(STORY) == []
    assert session.view() == view
    session.sync([*STORY, *turn(12)])
    assert session.view() == [*view, *turn(12)]


def test_a_rewound_history_goes_on_from_where_it_differs() -> None:
    session = make(8_000)
    session.sync(STORY)
    other = [*STORY[:8], *turn(77), *turn(78)]
    session.sync(other)
    assert session.view() == other
    assert requests_in(session) == [0, 1, 77, 78]
    assert faults(session) == []
    assert session.sync(other) == []


def test_what_was_taken_back_can_be_read_but_not_come_back_into_the_view() -> None:
    session = make(8_000)
    session.sync(STORY)
    last = session.segments()[-1]
    session.sync(STORY[:4])
    assert session.recall(last.segment_id).text == last.text
    assert session.view() == STORY[:4]
    assert session.segments()[-1].tier == "stashed"


def test_items_that_share_the_placeholder_id_of_openai_agents_come_in() -> None:
    """Over Chat Completions openai-agents gives every item that the model made the same id."""

    def said(text: str) -> dict[str, object]:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        known = {"id": "__fake_id__", "type": "message", "role": "assistant", "status": "completed"}
        return {**known, "content": content}

    def called(call_id: str) -> list[dict[str, object]]:
        call = {"id": "__fake_id__", "type": "function_call", "call_id": call_id}
        result = {
            "type": "function_call_output",
            "call_id": call_id,
            "output": f"{call_id} is green",
        }
        return [{**call, "name": "build", "arguments": "{}"}, result]

    history = [
        {"role": "user", "content": "Build it."},
        said("I build."),
        *called("c1"),
        *called("c2"),
    ]
    session = make(8_000)
    assert len(session.sync(history, format="responses")) == len(history)
    longer = [*history, said("Both are green."), {"role": "user", "content": "Thanks."}]
    assert len(session.sync(longer, format="responses")) == 2
    assert session.sync(longer, format="responses") == []
    assert session.messages(format="responses") == longer


def test_a_rewind_is_no_collection() -> None:
    session = make(8_000, preserve_recent_turns=1)
    session.sync(STORY)
    session.collect(900)
    session.sync(STORY[:8])
    assert len(session.gc_history) == 1
    session.undo()
    assert session.view() == STORY[:8]
    assert faults(session) == []


def test_a_history_that_cannot_be_changes_nothing() -> None:
    session = make(8_000)
    session.sync(STORY)
    state = state_of(session)
    with pytest.raises(MessageError):
        session.sync([*STORY[:8], {"role": "tool", "tool_call_id": "x", "content": "?"}])
    assert state_of(session) == state


def test_what_a_restore_put_in_the_stead_of_a_message_stays_with_it() -> None:
    session, agent = opened(), Agent()
    work = [
        ("read", 0, 0, 1),
        *[("edit", 0, 0)] * 3,
        ("grep", "harvest", 3),
        ("grep", "harvest", 7),
    ]
    drive(session, work, agent)
    checkpoint = session.checkpoint("here")
    for disturb in (
        lambda: session.sync(session.view()),
        lambda: session.restore(checkpoint.checkpoint_id),
        lambda: session.sync(session.view()),
    ):
        disturb()
        drive(session, LONG[:8], agent)
        assert faults(session) == []


def test_a_notice_does_not_come_between_a_call_and_its_changed_result() -> None:
    session = make(1_500)
    first = turn(0, tools=1)
    session.sync(first)
    notice = text_message("user", "[ctxgc: 3 older steps were moved out]", "openai", "gc_notice_1")
    session.inspect().editor.show(
        [*session.history[:3], notice, *session.history[3:]], "notice", created_by="guard"
    )
    assert first[2]["role"] == "tool"
    changed = [*first[:2], {**first[2], "content": "another result"}, *first[3:]]
    session.sync(changed)
    assert session.view() == changed
    assert faults(session) == []


def test_a_notice_stays_where_a_rewound_history_goes_on_behind_it() -> None:
    session = make(1_500)
    first = turn(0, tools=1)
    session.sync([*first, *turn(1)])
    notice = text_message("user", "[ctxgc: 3 older steps were moved out]", "openai", "gc_notice_1")
    end = len(first)
    session.inspect().editor.show(
        [*session.history[:end], notice, *session.history[end:]], "notice", created_by="guard"
    )
    session.sync([*first, *turn(7)])
    assert session.view() == [*first, notice.data, *turn(7)]
