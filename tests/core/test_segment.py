"""What a segment is, and what it refuses to be."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ctxgc.core import SEGMENT_FIELDS, ContextSegment, utc_now
from ctxgc.core.segment import explicit_references, new_segment_id
from ctxgc.errors import SegmentError
from tests.core.build import NOW, seg
from tests.requirements import requirement


@requirement(
    "S0.segment.pinned-default",
    "S0.segment.generation-default",
    "S0.segment.gc-survival-count-default",
    "S0.segment.refcount-default",
    "S0.segment.file-path-default",
    "S0.segment.line-range-default",
    "S0.segment.tags-default",
    "S0.segment.topic-id-default",
)
def test_a_new_segment_has_the_defaults_of_the_seed() -> None:
    made = ContextSegment(text="hello", type="note")
    fields = ("pinned", "generation", "gc_survival_count", "refcount", "file_path", "line_range")
    assert [getattr(made, name) for name in fields] == [False, "young", 0, 0, None, None]
    assert (made.tags, made.topic_id, made.references, made.tier) == ((), None, (), "working")


@requirement("S0.segment.segment-id", "S0.segment.text")
def test_a_segment_has_an_id_and_a_text() -> None:
    assert [(s.segment_id, s.text) for s in (seg("a", "one"), seg("b", "two"))] == [
        ("a", "one"),
        ("b", "two"),
    ]


def test_a_segment_without_an_id_gets_one_of_its_own() -> None:
    ids = {ContextSegment(text="same", type="log").segment_id for _ in range(50)}
    assert len(ids | {new_segment_id()}) == 51


@requirement("S0.segment.created-at", "S0.segment.last-touched-at")
def test_a_segment_carries_when_it_was_created_and_touched() -> None:
    later = NOW + timedelta(minutes=5)
    assert seg("a", created_at=NOW).last_touched_at == NOW
    made = seg("b", created_at=NOW, last_touched_at=later)
    assert (made.created_at, made.last_touched_at) == (NOW, later)


def test_times_that_nobody_gave_are_now_and_in_utc() -> None:
    before = utc_now()
    made = ContextSegment(text="x", type="log").created_at
    assert before <= made <= utc_now()
    assert made.tzinfo is UTC


@requirement("S0.segment.types")
@pytest.mark.parametrize("kind", ["message", "code", "log", "note", "decision", "summary"])
def test_the_six_types_are_accepted(kind: Any) -> None:
    assert ContextSegment(text="x", type=kind).type == kind


WRONG: list[tuple[str, Any]] = [
    ("type", "poem"),
    ("type", None),
    ("type", ["log"]),
    ("text", 7),
    ("text", b"bytes"),
    ("segment_id", ""),
    ("segment_id", 3),
    ("role", "robot"),
    ("generation", "ancient"),
    ("tier", "lost"),
    ("policy", "secret"),
    ("source", "aether"),
    ("part", "whole"),
    ("access", "write"),
    ("trust", "nobody"),
    ("superseded_how", "magic"),
    ("tokens", -1),
    ("tokens", 2.5),
    ("tokens", True),
    ("refcount", -1),
    ("refcount", "3"),
    ("gc_survival_count", -2),
    ("touches", None),
    ("created_step", -1),
    ("protected_until", -1),
    ("pinned", "yes"),
    ("failed", 1),
    ("line_range", (5, 2)),
    ("line_range", (-1, 2)),
    ("line_range", (1, 2, 3)),
    ("line_range", (1, "2")),
    ("line_range", "1-2"),
    ("references", "a"),
    ("references", [1]),
    ("tags", {"a": 1}),
    ("tags", (None,)),
    ("file_path", 9),
    ("topic_id", []),
    ("task_id", 4),
    ("command", {}),
    ("created_at", datetime(2026, 3, 1)),  # noqa: DTZ001 - naive on purpose
    ("created_at", "2026-03-01"),
    ("last_touched_at", datetime(2026, 3, 1)),  # noqa: DTZ001 - naive on purpose
]


@requirement("S0.segment.validation", "S0.segment.types")
@pytest.mark.parametrize(("field", "value"), WRONG)
def test_a_value_of_the_wrong_kind_is_refused_by_the_name_of_its_field(
    field: str, value: Any
) -> None:
    with pytest.raises(SegmentError) as caught:
        ContextSegment(**{"text": "x", "type": "log", field: value})
    assert caught.value.details == {"field": field}
    assert f"'{field}'" in caught.value.message
    assert caught.value.hint


def test_a_value_that_was_right_once_is_still_checked_the_next_time() -> None:
    assert seg("a", tokens=1).tokens == 1
    for _ in range(2):
        with pytest.raises(SegmentError):
            seg("a", tokens="1")


def test_a_long_value_is_shown_shortened() -> None:
    with pytest.raises(SegmentError) as caught:
        ContextSegment(text="x", type="p" * 500)  # type: ignore[arg-type]
    assert len(caught.value.message) < 110


def test_lists_and_sets_become_tuples_that_nobody_shares() -> None:
    tags = ["b", "a"]
    made = seg("a", tags=tags, references={"z", "y"}, line_range=[1, 9])
    tags.append("c")
    assert (made.tags, made.references, made.line_range) == (("b", "a"), ("y", "z"), (1, 9))


def test_a_segment_cannot_be_changed_from_outside() -> None:
    with pytest.raises(AttributeError):
        seg("a").text = "other"  # type: ignore[misc]


def test_explicit_references_come_with_the_kind_of_their_link() -> None:
    made = seg("a", references=["r"], tags=["ref:t", "plain"], reply_to="q", derived_from="d")
    assert explicit_references(made) == {
        "r": "reference",
        "t": "reference",
        "q": "reply",
        "d": "derived-from",
    }


def test_the_fields_are_those_of_the_definition() -> None:
    assert {"segment_id", "text", "type", "refcount", "position"} <= set(SEGMENT_FIELDS)
    assert len(SEGMENT_FIELDS) == len(set(SEGMENT_FIELDS))
