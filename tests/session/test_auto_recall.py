"""What a new message names and only the stash holds comes back by itself, at the end of the view."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxgc import GCConfig, Session
from ctxgc.errors import MessageError, StoreError
from ctxgc.session import Event
from ctxgc.stores import Store
from ctxgc.tokens import counter_for
from tests.session.build import Flaky
from tests.session.random_walk import faults

LIMIT = 20_000
KEYS: dict[str, Any] = {
    "recent_messages": 1, "recent_user_messages": 1, "preserve_recent_turns": 0, "recent_files": 0,
    "tombstone_names_percent": 0.0, "evacuate_keep_percent": 0.0,
}  # fmt: skip


def call(number: int) -> dict[str, Any]:
    function = {"name": "bash", "arguments": json.dumps({"command": f"run {number}"})}
    calls = [{"id": f"c{number}", "type": "function", "function": function}]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(number: int, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"c{number}", "content": text}


def stashed(store: str | Store = "memory:", **keys: Any) -> tuple[Session, list[Event]]:
    """Return a session that moved out an output with rare names, and the events from then on."""
    made = Session(LIMIT, config=GCConfig(**{**KEYS, **keys}), store=store)
    made.append({"role": "user", "content": "look around"})
    rows = [f"frobnicator_{n:03} = quuxly_{n:03}" for n in range(200)]
    outputs = ["\n".join(rows), *("nothing new " * 60 for _ in range(6))]
    for number, text in enumerate(outputs):
        made.extend([call(number), result(number, text)])
    made.append({"role": "assistant", "content": "done"})
    made.append({"role": "user", "content": "fine"})
    made.collect(600)
    made.append({"role": "assistant", "content": "what next?"})
    assert "frobnicator_" not in json.dumps(made.view())
    told: list[Event] = []
    made.events(told.append)
    return made, told


def ask(made: Session, text: str) -> list[dict[str, Any]]:
    made.append({"role": "user", "content": text})
    return made.messages()


def test_the_lines_around_a_name_come_at_the_end_and_the_rest_stays_byte_for_byte() -> None:
    made, told = stashed()
    before = json.dumps(made.view())[:-1]
    sent = ask(made, "what is frobnicator_100?")
    assert json.dumps(sent).startswith(before)
    *_, asked, back = sent
    assert asked == {"role": "user", "content": "what is frobnicator_100?"}
    head, *lines = back["content"].split("\n")
    assert back["role"] == "user"
    assert head.startswith("[ctxgc: frobnicator_100 is in ")
    assert lines == [f"frobnicator_{n:03} = quuxly_{n:03}" for n in range(98, 103)]
    (event,) = [event for event in told if event.kind == "recalled"]
    assert event.data == {"names": ["frobnicator_100"], "automatic": True}
    assert list(made.inspect().state.ghosts.to_doc()) == ["command run"]
    recalled = made.recalled()
    assert recalled is not None
    assert recalled.text() == back["content"]
    assert faults(made) == []


def test_what_an_output_names_by_the_way_comes_back_without_a_ghost() -> None:
    made, told = stashed(plugin_config={"preset": "off"})
    made.extend([call(98), result(98, "see frobnicator_100")])
    assert made.messages()[-1]["content"].startswith("[ctxgc: frobnicator_100 is in ")
    assert [event.kind for event in told if event.kind == "recalled"] == ["recalled"]
    assert made.inspect().state.ghosts.to_doc() == {}


def test_a_name_is_brought_back_once() -> None:
    made, _ = stashed()
    sent = ask(made, "what is frobnicator_100?")
    assert made.messages() == sent
    made.append({"role": "assistant", "content": "a row"})
    assert len(ask(made, "frobnicator_100 again")) == len(sent) + 2


def test_the_model_itself_and_unknown_names_bring_nothing_back() -> None:
    made, told = stashed()
    made.append({"role": "user", "content": "what about unheard_of_name?"})
    made.append({"role": "assistant", "content": "frobnicator_007 perhaps"})
    sent = ask(made, "go on")
    assert sent[-1] == {"role": "user", "content": "go on"}
    assert [event for event in told if event.kind == "recalled"] == []


def test_it_can_be_switched_off() -> None:
    made, _ = stashed(auto_recall=False)
    assert ask(made, "what is frobnicator_100?")[-1]["content"] == "what is frobnicator_100?"


def test_what_comes_back_stays_within_two_percent_of_the_window() -> None:
    made, _ = stashed()
    names = " ".join(f"frobnicator_{n:03}" for n in range(0, 200, 10))
    back = ask(made, f"compare {names}")[-1]["content"]
    assert back.startswith("[ctxgc: frobnicator_000")
    assert 0 < counter_for(None).count(back) <= LIMIT * 0.02


def test_nothing_is_added_while_a_call_waits_for_its_result() -> None:
    made, _ = stashed()
    made.append({"role": "user", "content": "what is frobnicator_100?"})
    made.append(call(99))
    before = made.view()
    with pytest.raises(MessageError, match="waits for its result"):
        made.messages()
    assert made.view() == before
    made.append(result(99, "ok"))
    assert made.messages()[-1]["content"].startswith("[ctxgc: frobnicator_100")


def test_it_is_gone_after_the_next_collection_and_was_never_the_only_copy() -> None:
    made, _ = stashed()
    ask(made, "what is frobnicator_100?")
    made.append({"role": "assistant", "content": "a row"})
    made.append({"role": "user", "content": "thanks"})
    made.collect(300)
    assert "quuxly_100" not in json.dumps(made.view())
    assert "quuxly_100" in "\n".join(segment.text for segment in made.segments())
    assert faults(made) == []


def test_a_history_that_is_synced_again_is_the_same_in_spite_of_it() -> None:
    made = Session(LIMIT, config=GCConfig(**KEYS), store="memory:")
    rows = "\n".join(f"frobnicator_{n:03} = quuxly_{n:03}" for n in range(200))
    story = [{"role": "user", "content": "look"}, call(0), result(0, rows)]
    story += [{"role": "assistant", "content": "ok"}, {"role": "user", "content": "fine"}]
    made.sync(story)
    made.collect(100)
    story += [{"role": "assistant", "content": "?"}]
    story += [{"role": "user", "content": "frobnicator_100!"}]
    made.sync(story)
    sent = made.messages()
    assert "quuxly_100" in sent[-1]["content"]
    made.sync(story)
    assert made.messages() == sent


def test_nothing_comes_back_that_would_make_a_collection_due() -> None:
    made, told = stashed(threshold_percent=50, target_percent=40)
    long = "so long a story " * ((LIMIT // 2 - made.usage().total_tokens) // 4 - 10)
    sent = ask(made, f"{long} and what is frobnicator_100?")
    assert made.usage().percent_used < 50
    assert sent[-1]["content"].endswith("what is frobnicator_100?")
    assert [event for event in told if event.kind in ("recalled", "collected")] == []


QUESTION = {"role": "user", "content": "what was frobnicator_042?"}


def came_back(made: Session) -> bool:
    return "quuxly_042" in json.dumps(made.messages())


def test_a_name_brings_its_lines_back_after_the_host_has_retried_its_message() -> None:
    made = Session(LIMIT, config=GCConfig(**KEYS), store="memory:")
    rows = "\n".join(f"frobnicator_{n:03} = quuxly_{n:03}" for n in range(200))
    history = [{"role": "user", "content": "look around"}, call(0), result(0, rows)]
    history += [{"role": "assistant", "content": "done"}, {"role": "user", "content": "fine"}]
    history += [{"role": "assistant", "content": "what next?"}]
    made.sync(history)
    made.collect(300)
    made.sync([*history, {"role": "user", "content": "something else"}])
    assert not came_back(made)
    made.sync([*history, QUESTION])
    assert came_back(made)


def test_a_name_brings_its_lines_back_after_a_restart() -> None:
    made, _ = stashed()
    made.append(QUESTION)
    made.flush()
    again = Session(
        LIMIT, config=made.config, store=made.inspect().archive.store, session_id=made.session_id
    )
    assert came_back(again)


def test_a_name_brings_its_lines_back_under_another_configuration() -> None:
    made, _ = stashed()
    made.append(QUESTION)
    made.set_gc_plugin("gc_mark_sweep", made.config.replace(recent_messages=2))
    assert came_back(made)


def test_a_recall_that_could_not_be_stored_is_made_again() -> None:
    made, told = stashed(store := Flaky())
    made.append(QUESTION)
    store.fail_next()
    with pytest.raises(StoreError):
        made.messages()
    assert (made.inspect().state.ghosts.to_doc(), told) == ({}, [])
    assert came_back(made)
    assert made.inspect().state.ghosts.to_doc() != {}
