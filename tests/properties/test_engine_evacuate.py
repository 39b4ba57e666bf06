"""Evacuation of any text: verbatim, in order, nothing lost that the budgets have room for."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from ctxgc.collector.excerpt import Evacuation, cover_lines, evacuate
from ctxgc.core import GAP, identifiers, looks_like_ours
from ctxgc.core.text import MAX_LINE, pieces_of

_WORDS = st.sampled_from(
    ("alpha_1", "src/a.py", "the", "of", "ERR_77", "b-2024", "x" * 90, "k=v9", "[1,2]", "{a:", "q.w.e.r", GAP)
)  # fmt: skip
_GLUE = st.sampled_from((" ", "\n", "=", "|", ",", "\t", "<", "\n\n", "'"))
TEXTS = st.one_of(
    st.text(max_size=300),
    st.lists(st.tuples(_WORDS, _GLUE), max_size=120).map(
        lambda pairs: "".join(word + glue for word, glue in pairs)
    ),
)
HELD = st.sets(st.sampled_from(("alpha_1", "src/a.py", "ERR_77", "b-2024")))


def _lost(text: str, held: set[str]) -> list[str]:
    """Return the names of a text that nobody else holds."""
    return [name for name in identifiers(text) if name not in held]


def _kept_pieces(found: Evacuation) -> list[str]:
    return [line for line in found.kept.split("\n") if line != GAP] if found.kept else []


def _is_subsequence(part: list[str], whole: list[str]) -> bool:
    rest = iter(whole)
    return all(line in rest for line in part)


@given(TEXTS)
def test_the_pieces_of_a_text_are_short_and_make_up_the_text(text: str) -> None:
    pieces = pieces_of(text)[0]
    assert all(len(piece) <= MAX_LINE for piece in pieces)
    assert "".join(pieces) == text.replace("\n", "")


@example("=".join(f"name_{n}" for n in range(60)), set())
@given(TEXTS, HELD)
def test_splitting_a_text_tears_no_identifier_apart(text: str, held: set[str]) -> None:
    pieces = pieces_of(text)[0]
    assert {name for piece in pieces for name in identifiers(piece)} >= set(
        identifiers(text)
    ) - held


@given(TEXTS, HELD, st.floats(0, 1), st.floats(0, 1))
def test_kept_lines_are_verbatim_and_in_order_and_within_their_budget(
    text: str, held: set[str], lines: float, names: float
) -> None:
    found = evacuate(text, _lost(text, held), line_share=lines, name_share=names)
    kept = _kept_pieces(found)
    assert _is_subsequence(kept, pieces_of(text)[0])
    assert sum(len(piece) for piece in kept) <= lines * (len(text) + 6)
    assert sum(len(name) + 2 for name in found.names) <= names * len(text)
    assert held.isdisjoint(found.names)


@given(TEXTS, HELD)
def test_every_name_that_only_this_text_holds_stays_as_a_line_where_there_is_room(
    text: str, held: set[str]
) -> None:
    found = evacuate(text, _lost(text, held), line_share=100, name_share=0)
    kept = {name for piece in _kept_pieces(found) for name in identifiers(piece)}
    forged = [piece for piece in pieces_of(text)[0] if looks_like_ours(piece)]
    quoted = text if not forged else ""
    assert set(identifiers(quoted)) - held <= kept


@given(TEXTS, HELD, st.floats(0, 1))
def test_what_no_line_keeps_is_named_where_there_is_room(
    text: str, held: set[str], lines: float
) -> None:
    found = evacuate(text, _lost(text, held), line_share=lines, name_share=100)
    kept = {name for piece in _kept_pieces(found) for name in identifiers(piece)}
    assert set(identifiers(text)) - held <= kept | set(found.names)


@given(st.lists(st.sets(st.integers(0, 6)), max_size=6), st.integers(0, 12))
def test_a_cover_is_within_budget_and_no_piece_could_still_be_added(
    sets: list[set[int]], budget: int
) -> None:
    wanted = {place: frozenset(map(str, names)) for place, names in enumerate(sets)}
    costs = [1.0 + len(names) for names in sets]
    chosen, covered, spent = cover_lines(wanted, lambda _: 1, costs.__getitem__, budget)
    assert chosen == sorted(set(chosen))
    assert covered == frozenset[str]().union(*(wanted[n] for n in chosen))
    assert spent == sum(costs[n] for n in chosen) <= budget
    assert all(wanted[n] <= covered or costs[n] > budget - spent for n in wanted)


class _Counted(frozenset[str]):
    """A set of names that counts how often it is compared."""

    looks = 0

    def __sub__(self, other: object) -> frozenset[str]:
        _Counted.looks += 1
        return super().__sub__(other)  # type: ignore[operator]  # any set of names will do


def test_the_work_of_a_cover_is_bounded_by_the_names_in_the_text() -> None:
    chain = {n: _Counted(str(name) for name in range(n, n + 20)) for n in range(2_000)}
    _Counted.looks = 0
    cover_lines(chain, lambda _: 1, lambda place: 1.0 + 0.001 * place, 1e9)
    assert _Counted.looks <= 20 * len(chain)
