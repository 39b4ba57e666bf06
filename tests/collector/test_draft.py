"""The draft: a history while a strategy works on it, with the books kept at every move."""

from __future__ import annotations

from ctxgc.budget import InstructionSource
from ctxgc.collector import GCRemovalItem
from ctxgc.collector.booking import Booking
from ctxgc.collector.run import HistoryDraft
from ctxgc.core import Message
from ctxgc.tokens import message_tokens
from ctxgc.wire import replace_text, text_message
from tests.strategies.build import COUNTER, ids, size_of, talk


def count(message: Message) -> int:
    return message_tokens(message, COUNTER)


def draft_of(history: list[Message]) -> HistoryDraft:
    return HistoryDraft(history, size_of(history), Booking(history, None, count, list))


def test_a_message_that_left_is_booked_once_with_what_it_freed() -> None:
    history = talk(3)
    draft = draft_of(history)
    draft.remove_all(["m2", "m3", "m2"], "gone")
    assert ids(draft.history()) == ["m0", "m1", "m4", "m5"]
    assert [(i.child_key, i.reason) for i in draft.items()] == [("m2", "gone"), ("m3", "gone")]
    assert draft.tokens == size_of(draft.history())
    assert (draft.size("m2"), draft.get("m2")) == (0, None)


def test_what_shrinks_twice_is_one_item_with_the_sum() -> None:
    history = talk(2)
    draft = draft_of(history)
    draft.replace(replace_text(history[1], 0, "much shorter now"), "cut")
    draft.replace(replace_text(history[1], 0, "short"), "cut again")
    (item,) = draft.items()
    assert (item.reason, item.tokens_freed) == ("cut again", count(history[1]) - draft.size("m1"))
    assert draft.tokens == size_of(draft.history())


def test_what_comes_in_stands_in_front_of_its_place_even_if_that_is_empty() -> None:
    history = talk(2)
    draft = draft_of(history)
    note = text_message("user", "note", "openai", "n")
    last = text_message("user", "last", "openai", "l")
    draft.remove("m1", "gone")
    draft.insert(note, before="m1")
    draft.insert(last, before=None)
    assert ids(draft.history()) == ["m0", "n", "m2", "m3", "l"]
    assert draft.tokens == size_of(draft.history())
    draft.renew(note, text_message("user", "a longer note", "openai", "r"))
    assert ids(draft.history()) == ["m0", "r", "m2", "m3", "l"]
    assert draft.tokens == size_of(draft.history())
    draft.withdraw(draft.added[0])
    assert ids(draft.history()) == ["m0", "m2", "m3", "l"]
    assert draft.tokens == size_of(draft.history())


def test_a_cleared_source_takes_its_messages_along() -> None:
    history = talk(3)
    draft = draft_of(history)
    size = count(history[2])
    item = GCRemovalItem(InstructionSource.ENRICHMENT, None, size + 30, "bulk", ("m2",))
    before = draft.tokens
    draft.clear(item)
    assert draft.items() == [item]
    assert draft.tokens == before - size - 30
    assert "m2" not in ids(draft.history())
