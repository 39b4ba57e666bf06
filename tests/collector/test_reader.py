"""The reader: reads each message once, and again what somebody else changed."""

from __future__ import annotations

from typing import Any
from weakref import ref

from ctxgc.collector.reader import Reader
from ctxgc.core import Message, short_tombstone
from ctxgc.wire import PartTexts, parse, replace_text
from tests.collector.agent import Agent, view_of

STUB = short_tombstone(5, "cold", recall="", names=(), kept="")


def history() -> list[Message]:
    agent = Agent()
    raw: list[dict[str, Any]] = agent.begin()
    for step in (("read", 0, 0, 20), ("edit", 0, 3), ("test", 5)):
        said, back = agent.step(step)
        raw += [*said, *back]
    return [parse(message, "openai", f"m{n}") for n, message in enumerate(raw)]


def test_what_is_new_is_read_once() -> None:
    reader, view = Reader(PartTexts()), history()
    fresh = reader.follow(view[:3], 1)
    assert [(item.message_id, item.kind, item.born) for item in fresh] == [("m2", "view", 1)]
    assert reader.follow(view[:3], 1) == []
    assert [item.message_id for item in reader.follow(view, 2)] == ["m4", "m6"]
    assert [item.place for item in reader.open] == [2, 4, 6]


def test_a_message_that_changed_is_read_again_and_is_not_new() -> None:
    reader, view = Reader(PartTexts()), history()
    reader.follow(view, 1)
    names = reader.census.names["load_0_5"]
    view[2] = replace_text(view[2], 0, "nothing here")
    assert reader.follow(view, 5) == []
    assert reader.census.names["load_0_5"] == names - 1
    (item,) = reader.items_of("m2")
    assert (item.born, item.text.lines) == (4, ["nothing here"])


def test_what_left_is_forgotten_and_comes_back_as_known() -> None:
    reader, view = Reader(PartTexts()), history()
    reader.follow(view, 1)
    before = dict(reader.census.names)
    reader.follow([view[0], *view[3:]], 2)
    assert "m2" not in reader.known
    assert [item.source for item in reader.open] == ["m4/0", "m6/0"]
    assert reader.follow(view, 3) == []
    assert dict(reader.census.names) == before
    assert [item.place for item in reader.open] == [2, 4, 6]


def test_a_settled_message_is_not_read_again() -> None:
    reader, view = Reader(PartTexts()), history()
    reader.follow(view, 1)
    (item,) = reader.items_of("m2")
    reader.show(item, [3], ["load_0_7"])
    assert reader.census.listed == {"load_0_7": 1}
    view[2] = replace_text(view[2], 0, item.text.lines[3])
    reader.settle(view[2:3])
    reader.follow(view, 2)
    assert reader.items_of("m2") == [item]
    assert (item.kept, item.chars) == ((3,), len(item.text.lines[3]) + 1)


def test_a_tombstone_and_an_image_are_no_results_to_shorten() -> None:
    reader, view = Reader(PartTexts()), history()
    view[2] = replace_text(view[2], 0, "[ctxgc: 9 tokens, seen]\nload_0_3()")
    reader.follow(view, 1)
    assert reader.items_of("m2") == []
    assert reader.census.names["load_0_3"] > 0


def test_a_source_of_copies_counts_as_sent_anew() -> None:
    reader, view = Reader(PartTexts()), history()
    reader.follow(view, 1)
    assert reader.describe("m2/0", 7) == "Read result"
    assert [item.born for item in reader.items_of("m2")] == [7]
    assert reader.describe("m0/0", 7) == "text"


def test_the_call_of_a_result_is_found() -> None:
    reader, view = Reader(PartTexts()), history()
    reader.follow(view, 1)
    (item,) = reader.items_of("m4")
    found = reader.call_of(item)
    assert found is not None
    assert (found[0].message, found[1]) == (view[3], 0)
    reader.follow([*view[:3], *view[4:]], 2)
    assert reader.call_of(item) is None


def test_small_results_are_looked_at_again_when_sizes_change() -> None:
    reader, view = Reader(PartTexts()), history()
    reader.follow(view, 1)
    for item in list(reader.open):
        reader.open.drop(item)
    reader.items_of("m6")[0].stubbed_at = 1
    reader.reopen()
    assert [item.source for item in reader.open] == ["m2/0", "m4/0"]
    assert view_of(0, 0, 20) == view[2].parts[0].text


def test_the_text_of_a_result_that_became_a_stub_does_not_stay_in_memory() -> None:
    reader, view = Reader(PartTexts()), history()
    gone = [ref(item) for item in reader.follow(view, 1)]
    assert len(gone) == 3
    for place in (2, 4, 6):
        view[place] = replace_text(view[place], 0, STUB)
    reader.follow(view, 2)
    assert [item() for item in gone] == [None] * 3
