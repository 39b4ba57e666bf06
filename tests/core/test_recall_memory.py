"""RecallMemory: what was recalled makes similar segments stay longer, for a while."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.core import ContextSegment, RecallMemory
from ctxgc.core.recall_memory import HALF_LIFE, MOST_KEYS, MOST_WEIGHT, similarity_key


def view(path: str = "src/a.py") -> ContextSegment:
    return ContextSegment(text="x", type="code", file_path=path)


def output(command: str) -> ContextSegment:
    return ContextSegment(text="x", type="log", command=command)


@pytest.mark.parametrize(
    ("segment", "key"),
    [
        (view(), "file src/a.py"),
        (output("pytest -v tests/test_a.py"), "command pytest"),
        (output("git diff HEAD"), "command git diff"),
        (output("cd /src && git diff"), "command git diff"),
        (output('Grep {"pattern": "x"}'), "command Grep"),
        (ContextSegment(text="hello", type="message"), ""),
    ],
)
def test_similar_segments_show_the_same_file_or_come_from_the_same_kind_of_command(
    segment: ContextSegment, key: str
) -> None:
    assert similarity_key(segment) == key


def test_a_recall_weighs_on_similar_segments_and_fades() -> None:
    memory = RecallMemory()
    memory.note(view(), 3)
    assert bool(memory)
    assert memory.weight(view(), 3) == 1.0
    assert memory.weight(view(), 3 + HALF_LIFE) == 0.5
    assert memory.weight(view(), 3 + 9 * HALF_LIFE) == 0.0
    assert memory.weight(view("src/b.py"), 3) == 0.0
    assert memory.any_left(3 + 3 * HALF_LIFE)
    assert not memory.any_left(3 + 4 * HALF_LIFE)


def test_a_message_is_similar_to_nothing() -> None:
    memory = RecallMemory()
    memory.note(ContextSegment(text="hello", type="message"), 1)
    assert not memory


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 9)), max_size=300))
def test_recalls_are_bounded_in_number_and_weight_and_the_oldest_are_forgotten(
    recalls: list[tuple[int, int]],
) -> None:
    memory, request, last = RecallMemory(), 0, dict[str, int]()
    for path, later in recalls:
        request += later
        memory.note(view(f"{path}.py"), request)
        last.pop(f"{path}.py", None)
        last[f"{path}.py"] = request
    newest = list(last)[-MOST_KEYS:]
    assert list(memory.to_doc()) == [f"file {path}" for path in newest]
    for path, since in last.items():
        weight = memory.weight(view(path), since)
        assert (1.0 <= weight <= MOST_WEIGHT) if path in newest else weight == 0.0


def test_a_document_holds_all_recalls() -> None:
    memory, other = RecallMemory(), RecallMemory()
    memory.note(view(), 3)
    memory.note(output("git diff"), 5)
    other.restate(memory.to_doc())
    assert (
        other.to_doc()
        == memory.to_doc()
        == {"file src/a.py": [1.0, 3], "command git diff": [1.0, 5]}
    )
