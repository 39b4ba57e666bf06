"""Who holds which rare identifier."""

from __future__ import annotations

from ctxgc.core import KeepScore, ScoreContext
from ctxgc.core.links import MAX_TOUCHED, RARE, Mentions
from tests.core.build import NOW, heap_of, seg
from tests.requirements import requirement


def test_a_text_mentions_the_older_holders_of_its_identifiers() -> None:
    mentions = Mentions()
    assert mentions.add("a", "parse_header") == []
    assert mentions.add("b", "parse_header and read_body") == ["a"]
    assert mentions.add("c", "read_body, parse_header") == ["b", "a"]
    assert mentions.holders("parse_header") == ("a", "b", "c")


def test_an_identifier_that_many_hold_links_nobody() -> None:
    mentions = Mentions()
    for n in range(RARE + 1):
        mentions.add(f"s{n}", "parse_header")
    assert mentions.is_common("parse_header")
    assert (mentions.holders("parse_header"), mentions.add("new", "parse_header")) == ((), [])
    assert mentions.common() == ["parse_header"]


def test_what_was_common_stays_common_in_a_new_life() -> None:
    mentions = Mentions()
    mentions.restate_common(["parse_header"])
    assert mentions.add("a", "parse_header") == []
    assert mentions.is_common("parse_header")


def test_who_leaves_is_mentioned_no_more() -> None:
    mentions = Mentions()
    mentions.add("a", "parse_header read_body")
    mentions.add("b", "parse_header")
    mentions.discard("a", "parse_header read_body")
    assert (mentions.holders("parse_header"), mentions.holders("read_body")) == (("b",), ())
    assert not mentions.is_common("read_body")


def test_one_text_touches_a_bounded_number() -> None:
    mentions = Mentions()
    for n in range(MAX_TOUCHED * 2):
        mentions.add(f"s{n}", f"name_{n}")
    mentioned = mentions.add("all", " ".join(f"name_{n}" for n in range(MAX_TOUCHED * 2)))
    assert mentioned == [f"s{n}" for n in range(MAX_TOUCHED, MAX_TOUCHED * 2)]


@requirement("S0.links.function")
def test_segments_about_the_same_symbol_are_tied_the_closer_the_rarer_it_is() -> None:
    heap = heap_of(
        seg("root", "parse_header and read_body"),
        seg("twin", "parse_header fails"),
        seg("one", "read_body"),
        seg("two", "read_body"),
        seg("stranger", "plain words"),
    )
    soft = heap.mentions.soft_weights({"root": heap.get("root").text})
    assert soft == {"root": 5 / 6, "twin": 1 / 2, "one": 1 / 3, "two": 1 / 3}
    context = ScoreContext(now=NOW, step=5, soft=soft)
    scorer = KeepScore(weights={"recency": 0, "touches": 0, "age": 0})
    scores = {segment.segment_id: scorer(segment, context) for segment in heap}
    assert scores["twin"] > scores["one"] == scores["two"] > scores["stranger"]


def test_ties_do_not_depend_on_the_order_in_which_names_came() -> None:
    names = [f"name_{n}" for n in range(7)]

    def ties(order: list[str]) -> float:
        mentions = Mentions()
        for place, name in enumerate(order):
            for holder in range(2 + names.index(name) % 6):
                mentions.add(f"{name}{holder}", name)
            mentions.add("me", name)
            assert place < len(names)
        return mentions.soft_weights({"me": " ".join(order)})["me"]

    assert ties(names) == ties(names[::-1])


def test_ties_to_what_is_not_held_weigh_nothing() -> None:
    mentions = Mentions()
    mentions.add("a", "parse_header")
    mentions.add("b", "parse_header")
    assert mentions.soft_weights({"c": "read_body"}) == {}
    assert mentions.soft_weights({"a": "parse_header"}) == {"a": 0.5, "b": 0.5}


def test_long_texts_are_not_read_again_and_tie_just_the_same() -> None:
    mentions = Mentions()
    for holder in ("a", "b"):
        mentions.add(holder, "parse_header")
    assert mentions.soft_weights({"a": "parse_header " * 1_000}) == {"a": 0.5, "b": 0.5}


def test_the_names_that_go_are_those_that_nobody_holds_who_stays() -> None:
    for filler in ("", "and much more text " * 50):  # the names of a long text are remembered
        mentions = Mentions()
        mentions.add("leaving", f"shared_by_two shared_by_three {filler}")
        mentions.add("staying", f"shared_by_three {filler}")
        text = f"only_here shared_by_two shared_by_three {filler}"
        mentions.add("asked", text)
        mentions.restate_common(["common_name"])
        assert mentions.going("asked", text, set()) == ["only_here"]
        assert mentions.going("asked", text, {"leaving"}) == ["only_here", "shared_by_two"]
        assert mentions.going("asked", f"{text} common_name", {"leaving", "staying"}) == [
            "only_here", "shared_by_two", "shared_by_three",
        ]  # fmt: skip


def test_a_long_text_is_read_once_until_it_is_deleted() -> None:
    mentions, text = Mentions(), "parse_header read_body " * 100
    mentions.add("a", text)
    assert mentions.going("a", "this is not read", set()) == ["parse_header", "read_body"]
    mentions.discard("a", text)
    assert mentions.going("a", text, set()) == []
    assert mentions.names_of("a", "this is not read") == ["parse_header", "read_body"]
    mentions.forget("a")
    mentions.add("a", "find_footer")
    assert mentions.going("a", "find_footer", set()) == ["find_footer"]


def test_a_text_that_somebody_has_read_is_entered_by_its_names() -> None:
    mentions = Mentions()
    mentions.add("a", "this is not read", ["parse_header"])
    assert mentions.holders("parse_header") == ("a",)
