"""Ghosts: what was recalled makes its like stay longer, for a while."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.core import ContextSegment, Ghosts
from ctxgc.core.ghosts import HALF_LIFE, MOST_KIN, MOST_WEIGHT, kin_of


def view(path: str = "src/a.py") -> ContextSegment:
    return ContextSegment(text="x", type="code", file_path=path)


def output(command: str) -> ContextSegment:
    return ContextSegment(text="x", type="log", command=command)


@pytest.mark.parametrize(
    ("segment", "kin"),
    [
        (view(), "file src/a.py"),
        (output("pytest -v tests/test_a.py"), "command pytest"),
        (output("git diff HEAD"), "command git diff"),
        (output("cd /src && git diff"), "command git diff"),
        (output('Grep {"pattern": "x"}'), "command Grep"),
        (ContextSegment(text="hello", type="message"), ""),
    ],
)
def test_kin_show_the_same_file_or_come_from_the_same_kind_of_command(
    segment: ContextSegment, kin: str
) -> None:
    assert kin_of(segment) == kin


def test_a_recall_haunts_its_kin_and_fades() -> None:
    ghosts = Ghosts()
    ghosts.note(view(), 3)
    assert bool(ghosts)
    assert ghosts.weight(view(), 3) == 1.0
    assert ghosts.weight(view(), 3 + HALF_LIFE) == 0.5
    assert ghosts.weight(view(), 3 + 9 * HALF_LIFE) == 0.0
    assert ghosts.weight(view("src/b.py"), 3) == 0.0
    assert ghosts.are_about(3 + 3 * HALF_LIFE)
    assert not ghosts.are_about(3 + 4 * HALF_LIFE)


def test_what_has_no_kin_leaves_no_ghost() -> None:
    ghosts = Ghosts()
    ghosts.note(ContextSegment(text="hello", type="message"), 1)
    assert not ghosts


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 9)), max_size=300))
def test_ghosts_are_bounded_in_number_and_weight_and_the_oldest_are_forgotten(
    recalls: list[tuple[int, int]],
) -> None:
    ghosts, request, last = Ghosts(), 0, dict[str, int]()
    for path, later in recalls:
        request += later
        ghosts.note(view(f"{path}.py"), request)
        last.pop(f"{path}.py", None)
        last[f"{path}.py"] = request
    newest = list(last)[-MOST_KIN:]
    assert list(ghosts.to_doc()) == [f"file {path}" for path in newest]
    for path, since in last.items():
        weight = ghosts.weight(view(path), since)
        assert (1.0 <= weight <= MOST_WEIGHT) if path in newest else weight == 0.0


def test_a_document_holds_them_all() -> None:
    ghosts, other = Ghosts(), Ghosts()
    ghosts.note(view(), 3)
    ghosts.note(output("git diff"), 5)
    other.restate(ghosts.to_doc())
    assert (
        other.to_doc()
        == ghosts.to_doc()
        == {"file src/a.py": [1.0, 3], "command git diff": [1.0, 5]}
    )
