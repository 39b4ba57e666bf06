"""Evacuation: which lines stay."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxgc.collector.excerpt import Evacuation, cover_lines, evacuate
from ctxgc.core import GAP, identifiers
from ctxgc.core.text import MAX_LINE, pieces_of

LINES = st.lists(
    st.sampled_from(("plain words of no use at all", "parse_header fails", "", "see read_body", "x" * 450))
)  # fmt: skip


def test_the_lines_that_alone_hold_an_identifier_stay_verbatim() -> None:
    text = "\n".join(
        ["filler words " * 5] * 8 + ["  parse_header = 1 "] + ["more filler words " * 5] * 8
    )
    found = evacuate(text, ["parse_header"])
    assert found == Evacuation(f"{GAP}\n  parse_header = 1 \n{GAP}", ())


def test_what_somebody_else_holds_does_not_stay() -> None:
    assert evacuate("parse_header\nread_body", []) == Evacuation("", ())


def test_names_that_do_not_fit_as_lines_are_named_and_the_rest_is_dropped() -> None:
    text = "\n".join(f"{'long filler word ' * 10} name_{n:03}" for n in range(40))
    found = evacuate(text, identifiers(text), line_share=0.0, name_share=0.05)
    assert found.kept == ""
    assert found.names == tuple(f"name_{n:03}" for n in range(len(found.names)))
    assert 0 < sum(len(name) + 2 for name in found.names) <= 0.05 * len(text)


def test_the_cover_takes_the_most_names_for_the_least_cost() -> None:
    names = ("ab", "abc", "d", "", "c")
    wanted = {line: frozenset(own) for line, own in enumerate(names)}
    dear = {1: 9.0}
    assert cover_lines(wanted, lambda _: 1, lambda _: 1.0, 2.0) == ([1, 2], set("abcd"), 2.0)
    assert cover_lines(wanted, lambda _: 1, lambda n: dear.get(n, 1.0), 3.0).lines == [0, 2, 4]
    assert cover_lines(wanted, lambda _: 1, lambda _: 1.0, 0.5) == ([], set(), 0.0)
    assert cover_lines(wanted, lambda _: 1, lambda _: 1.0, 9.0, least=2.0).lines == [1]


@given(LINES)
def test_splitting_loses_nothing(lines: list[str]) -> None:
    text = "\n".join(lines)
    pieces, _ = pieces_of(text)
    assert "".join(pieces) == text.replace("\n", "")
    assert all(len(piece) <= MAX_LINE for piece in pieces)


@given(LINES, st.floats(0, 1), st.floats(0, 1))
def test_what_stays_is_verbatim_in_order_and_no_wanted_name_is_lost_silently(
    lines: list[str], line_share: float, name_share: float
) -> None:
    text = "\n".join(lines)
    found = evacuate(text, identifiers(text), line_share=line_share, name_share=name_share)
    kept = [line for line in found.kept.split("\n") if line != GAP] if found.kept else []
    rest = iter(pieces_of(text)[0])
    assert all(line in rest for line in kept)
    held = set(identifiers(found.kept))
    assert held.isdisjoint(found.names)
    assert {*held, *found.names} <= {name for line in lines for name in identifiers(line)} | held


def test_a_single_line_of_a_megabyte_is_cut_at_its_fields() -> None:
    line = ",".join(f'"name_{n}": {n}' for n in range(40_000))
    found = evacuate(line, ["name_777"])
    assert '"name_777": 777' in found.kept
    assert len(found.kept) < 500
