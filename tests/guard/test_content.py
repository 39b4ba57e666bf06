"""ContentItem: made by hand, from segments, from a mapping of texts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.core import POINTS_TYPE, ContextSegment, KeepScore, ScoreContext
from ctxgc.errors import InputError
from ctxgc.guard import ContentItem, Focus, item_from_segment
from ctxgc.guard.priorities import items_from_context
from ctxgc.guard.pruner import points

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_size_that_is_left_out_is_counted_from_the_text() -> None:
    assert ContentItem(id="a", type="note", text="x" * 9, timestamp=NOW).size == 3
    assert ContentItem(id="a", type="note", text="x" * 9, timestamp=NOW, size=0).size == 0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("size", -2),
        ("reference_count", -1),
        ("timestamp", datetime(2026, 1, 1)),  # noqa: DTZ001 - without a zone on purpose
        ("last_referenced_at", datetime(2026, 1, 1)),  # noqa: DTZ001
    ],
)
def test_impossible_values_are_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(InputError, match=field):
        ContentItem(**{"id": "a", "type": "note", "timestamp": NOW, field: value})


def segment(**fields: Any) -> ContextSegment:
    defaults: dict[str, Any] = {"text": "12345678", "type": "message", "created_at": NOW}
    return ContextSegment(**{**defaults, **fields})


def test_a_segment_becomes_an_item_with_all_that_counts() -> None:
    touched = NOW + timedelta(minutes=1)
    made = segment(
        segment_id="s1", type="log", role="tool", part="tool_result", tokens=50, task_id="t",
        refcount=3, pinned=True, failed=True, superseded_by="s2", superseded_how="resolved",
        file_path="a.py", bond_id="b", tags=("debug",), last_touched_at=touched,
    )  # fmt: skip
    assert item_from_segment(made) == ContentItem(
        id="s1", type="error", text="12345678", size=50, timestamp=NOW, last_referenced_at=touched,
        task_id="t", reference_count=3, pinned=True, resolved=True, superseded=True,
        file_path="a.py", bond="b", tags=("debug",),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "kind", "essential"),
    [
        ({"role": "system"}, "system_prompt", False),
        ({"role": "user"}, "user_message", False),
        ({"role": "user", "part": "tool_result"}, "tool_result", False),
        ({"role": "assistant", "policy": "locked"}, "assistant_message", True),
        ({"type": "note"}, "agent_note", False),
        ({"role": "tool", "failed": True}, "error", False),
    ],
)
def test_the_type_comes_from_role_and_part(
    fields: dict[str, Any], kind: str, essential: bool
) -> None:
    item = item_from_segment(segment(**fields), len)
    assert (item.type, item.is_essential, item.size) == (kind, essential, 8)


TIMES = st.integers(0, 200).map(lambda minutes: NOW - timedelta(minutes=minutes))


@given(
    st.sampled_from([None, "system", "user", "assistant", "tool"]),
    st.sets(st.sampled_from([*POINTS_TYPE, "other"])),
    st.sampled_from([None, "t", "d", "x"]),
    st.integers(0, 9),
    TIMES,
    TIMES,
)
def test_an_item_has_the_points_that_its_segment_has_in_the_engine(
    role: Any, tags: set[str], task: str | None, refcount: int, first: datetime, second: datetime
) -> None:
    made = segment(
        role=role, tags=tuple(sorted(tags)), task_id=task, refcount=refcount,
        created_at=min(first, second), last_touched_at=max(first, second),
    )  # fmt: skip
    focus = Focus(now=NOW, current_task_id="t", task_dependencies=frozenset({"d"}))
    context = ScoreContext(now=NOW, current_task_id="t", task_dependencies=frozenset({"d"}))
    assert points(item_from_segment(made), focus) == KeepScore("points")(made, context)


def test_a_mapping_of_texts_becomes_items_by_kind() -> None:
    context = {
        "system_prompt": "be kind",
        "current_task": {"content": "fix it"},
        "active_file": None,
        "messages": ["first", {"role": "assistant", "content": "second"}],
        "last_error": "boom",
    }
    items = items_from_context(context, NOW, len)
    assert [(item.id, item.type, item.text, item.size) for item in items] == [
        ("system_prompt-0", "system_prompt", "be kind", 7),
        ("current_task-0", "current_task", "fix it", 6),
        ("messages-0", "user_message", "first", 5),
        ("messages-1", "assistant_message", "second", 6),
        ("last_error-0", "error", "boom", 4),
    ]


def test_what_is_no_text_in_a_mapping_is_refused_by_its_key() -> None:
    with pytest.raises(InputError, match="messages"):
        items_from_context({"messages": [{"role": "user", "content": [1]}]}, NOW)
