"""Plugins are other people's code: whatever they do, the session is left whole and says why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ctxgc.budget import GCPolicy, InstructionSource
from ctxgc.collector import GCRemovalItem, GCResult, GCTriggerReason
from ctxgc.core import Message
from ctxgc.wire import replace_text, text_message
from tests.session.build import events_of, filled, make, state_of
from tests.session.random_walk import faults

History = list[Message]


class Plugin:
    """A plugin of S3's form whose `collect` is what the test wants."""

    name = "gc_odd"

    def __init__(self, act: Callable[[History, Any], Any]) -> None:
        self._act = act

    def initialize(self, config: Any = None) -> None:
        """Take nothing."""

    def shutdown(self) -> None:
        """Hold nothing."""

    def should_collect(self, context_usage: Any, config: Any) -> Any:
        return False, None

    def collect(self, history: History, context_usage: Any, config: Any, reason: Any) -> Any:
        return self._act(history, reason)


class BudgetPlugin(Plugin):
    """A plugin of S2's form."""

    def collect(  # type: ignore[override]
        self, history: History, context_usage: Any, config: Any, reason: Any, budget: Any = None
    ) -> Any:
        return self._act(history, budget)


def done(reason: Any = GCTriggerReason.MANUAL, *items: GCRemovalItem, **more: Any) -> GCResult:
    return GCResult(True, 1, 5, 3, "gc_odd", reason, removal_list=list(items), **more)


def failed(reason: Any) -> GCResult:
    return GCResult(False, 0, 5, 5, "gc_odd", reason, error="the disk is full")


def boom(*_: Any) -> Any:
    raise KeyError("sk-ant-secret0123456789012345")


def swapped(history: History) -> History:
    return [*history[:4], history[6], history[7], history[4], history[5], *history[8:]]


def scribbled(history: History, *, fails: bool = False) -> History:
    """Change messages in their places, which are the session's own."""
    for message in history[2:6]:
        message.data["content"] = "HACK"
        message.data.pop("role")
    if fails:
        raise KeyError("later")
    return history


def odd(reason: Any, items: Any) -> GCResult:
    return GCResult(True, 1, 5, 3, "gc_odd", reason, removal_list=items)


def louder(history: History) -> History:
    more = text_message("user", "word " * 500, "openai", "gc_more")
    return [history[0], more, *history[1:]]


def edited(history: History, place: int, text: str) -> History:
    return [*history[:place], replace_text(history[place], 0, text), *history[place + 1 :]]


REFUSED: list[tuple[str, Callable[[History, Any], Any], str]] = [
    ("raises", boom, "KeyError"),
    ("returns nothing", lambda h, r: None, "must return (new_history, GCResult)"),
    ("returns no result", lambda h, r: (h, {"success": True}), "a list of messages and a GCResult"),
    ("returns no list", lambda h, r: (tuple(h), done(r)), "a list of messages and a GCResult"),
    ("returns numbers", lambda h, r: ([1, 2], done(r)), "the new history holds a int"),
    ("returns a wrong dict", lambda h, r: ([{"role": "?"}, *h], done(r)), "role"),
    ("empties the history", lambda h, r: ([], done(r)), "the new history is empty"),
    (
        "loses the last request",
        lambda h, r: (h[:-4], done(r)),
        "must stay as it is: it is the last",
    ),
    (
        "loses the first request",
        lambda h, r: (h[1:], done(r)),
        "must stay as it is: it is the first",
    ),
    ("loses a result", lambda h, r: ([*h[:6], *h[7:]], done(r)), "has no result"),
    ("loses a call", lambda h, r: ([*h[:5], *h[6:]], done(r)), "call_1_0"),
    ("reorders", lambda h, r: (swapped(h), done(r)), "the order of messages changed"),
    ("doubles", lambda h, r: ([*h, h[4]], done(r)), "in the new history twice"),
    ("grows the history", lambda h, r: (louder(h), done(r)), "the history grew"),
    ("edits the last request", lambda h, r: (edited(h, -4, "?"), done(r)), "must stay as it is"),
    ("reports no success", lambda h, r: (h, failed(r)), "the disk is full"),
    ("scribbles", lambda h, r: (scribbled(h), done(r)), "changed message"),
    ("scribbles, then raises", lambda h, r: scribbled(h, fails=True), "KeyError"),
    ("lists numbers", lambda h, r: (h[:], odd(r, [1])), "removal_list"),
    ("lists nothing", lambda h, r: (h[:], odd(r, None)), "removal_list"),
    ("lists a wrong item", lambda h, r: (h[:], odd(r, [GCRemovalItem(7)])), "int"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("what", "act", "why"), REFUSED, ids=[each[0] for each in REFUSED])
def test_a_plugin_that_goes_wrong_is_refused_and_nothing_changes(
    what: str, act: Callable[[History, Any], Any], why: str
) -> None:
    session = filled(8, tools=1, plugin=Plugin(act))
    before, seen = state_of(session), events_of(session)
    result = session.collect(100)
    assert not result.success
    assert why in str(result.error)
    assert (result.tokens_freed, result.removal_list) == (0, [])
    assert state_of(session) == before
    assert [event.kind for event in seen] == ["refused"]
    assert session.gc_history == [result]


def test_a_secret_in_a_plugins_error_is_masked() -> None:
    session = filled(4, plugin=Plugin(boom))
    assert "secret0123" not in str(session.collect(10).error)


def test_a_pinned_message_cannot_be_dropped_or_edited() -> None:
    session = filled(8, plugin=Plugin(lambda h, r: ([*h[:4], *h[6:]], done(r))))
    name = session.history[5].message_id
    session.pin(name)
    before = state_of(session)
    said = f"message 5 (assistant, id {name}) must stay as it is: it is pinned"
    assert session.collect(10).error == said
    assert state_of(session) == before


def test_system_text_cannot_be_dropped() -> None:
    session = make(plugin=Plugin(lambda h, r: (h[1:], done(r))))
    session.extend([{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi."}])
    name = session.history[0].message_id
    said = f"message 0 (system, id {name}) must stay as it is: it is system text"
    assert session.collect(1).error == said


def test_a_locked_message_cannot_be_dropped() -> None:
    session = filled(8, plugin=Plugin(lambda h, r: ([*h[:4], *h[6:]], done(r))))
    name = session.history[5].message_id
    session.set_policy(name, GCPolicy.LOCKED)
    said = f"message 5 (assistant, id {name}) must stay as it is: its policy is LOCKED"
    assert session.collect(10).error == said


def test_a_budget_that_a_plugin_writes_to_is_put_back() -> None:
    def scribble(history: History, budget: Any) -> Any:
        budget.clear(InstructionSource.CONVERSATION)
        budget.add_child(InstructionSource.PLUGIN, "mine", 7, GCPolicy.LOCKED)
        return history, done()

    session = filled(8, plugin=BudgetPlugin(scribble))
    before = state_of(session)
    assert session.collect(10).success
    assert state_of(session) == before


def test_a_budget_that_is_scribbled_on_before_a_crash_is_put_back_too() -> None:
    def crash(history: History, budget: Any) -> Any:
        budget.clear(InstructionSource.CONVERSATION)
        raise RuntimeError("boom")

    session = filled(8, plugin=BudgetPlugin(crash))
    before = state_of(session)
    assert not session.collect(10).success
    assert state_of(session) == before


def test_what_a_plugin_of_s2_takes_out_must_be_in_its_removal_list() -> None:
    session = filled(8, plugin=BudgetPlugin(lambda h, b: ([*h[:2], *h[4:]], done())))
    assert "is gone but not in the removal list" in str(session.collect(10).error)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (InstructionSource.PLUGIN, "'plugin' is locked"),
        (InstructionSource.CONVERSATION, "'conversation'"),
    ],
)
def test_a_source_that_is_locked_or_stays_in_the_view_cannot_be_cleared(
    source: InstructionSource, why: str
) -> None:
    session = filled(
        8,
        plugin=BudgetPlugin(lambda h, b: (h, done(GCTriggerReason.MANUAL, GCRemovalItem(source)))),
    )
    session.set_tools([{"name": "bash", "input_schema": {}}])
    before = state_of(session)
    assert why in str(session.collect(10).error)
    assert state_of(session) == before


def test_the_numbers_of_a_plugin_are_put_right() -> None:
    session = filled(8, plugin=Plugin(lambda h, r: ([*h[:2], *h[4:]], done(r))))
    gone = [message.message_id for message in session.history[2:4]]
    before = session.usage().total_tokens
    result = session.collect(10)
    assert result.success
    assert [item.child_key for item in result.removal_list] == gone
    assert (result.tokens_before, result.tokens_after) == (before, session.usage().total_tokens)
    assert result.items_collected == 2
    assert faults(session) == []


def test_a_plugin_may_name_turns_by_number_as_the_seed_does() -> None:
    items = [GCRemovalItem(InstructionSource.CONVERSATION, f"turn_{n}", 5, "old") for n in (1, 2)]
    session = filled(
        8,
        plugin=BudgetPlugin(lambda h, _: ([*h[:2], *h[6:]], done(GCTriggerReason.MANUAL, *items))),
    )
    gone = [message.message_id for message in session.history[2:6]]
    result = session.collect(10)
    assert (result.success, result.error) == (True, None)
    assert [(item.child_key, item.reason) for item in result.removal_list] == [
        (message_id, "old") for message_id in gone
    ]
    assert faults(session) == []


def test_a_plugin_may_put_a_plain_message_in_for_those_it_took_out() -> None:
    note = {"role": "user", "content": "some turns were left out"}
    session = filled(8, plugin=Plugin(lambda h, r: ([h[0], note, *h[4:]], done(r))))
    assert session.collect(10).success
    assert session.view()[1] == note
    assert [m.origin for m in session.history].count("gc_notice") == 1
    session.undo()
    assert len(session.view()) == 16
    assert faults(session) == []


def test_a_plugin_that_raises_when_asked_is_told_on_and_the_hard_limit_still_holds() -> None:
    class Asked(Plugin):
        def should_collect(self, context_usage: Any, config: Any) -> Any:
            raise ValueError("no idea")

    session = filled(17, plugin=Asked(lambda h, r: ([h[0], *h[14:]], done(r))))
    seen = events_of(session)
    session.messages()
    assert seen[0].kind == "refused"
    assert "no idea" in seen[0].data["error"]
    assert session.gc_history[0].trigger_reason is GCTriggerReason.PRE_MESSAGE


def test_a_session_with_a_refused_plugin_goes_on() -> None:
    session = filled(16, plugin=Plugin(boom), preserve_recent_turns=2)
    assert not session.collect(10).success
    session.set_gc_plugin("gc_truncate")
    assert session.collect(400).success
