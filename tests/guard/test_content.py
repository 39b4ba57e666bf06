"""Content: pieces made by hand, of segments, of a mapping with texts, values and provider messages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ctxgc.core import POINTS_TYPE, ContextSegment, KeepScore, ScoreContext
from ctxgc.errors import InputError
from ctxgc.guard import ContentItem, ContextPruner, Focus
from ctxgc.guard.content import items_of

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


def test_a_segment_becomes_an_item_and_stays_the_segment_that_is_ranked() -> None:
    made = segment(
        segment_id="s1", type="log", role="tool", part="tool_result", tokens=50, task_id="t",
        refcount=3, pinned=True, failed=True, superseded_by="s2", superseded_how="resolved",
        bond_id="b", tags=("debug",),
    )  # fmt: skip
    (item,) = items_of([made], NOW)
    assert replace(item, given=None) == ContentItem(
        id="s1", type="error", text="12345678", size=50, timestamp=NOW, task_id="t",
        reference_count=3, pinned=True, bond="b", tags=("debug",),
    )  # fmt: skip
    assert item.segment() is item.value is made


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
    (item,) = items_of([segment(**fields)], NOW, len)
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
    (scored,) = ContextPruner(100, focus=focus).score_content([made])
    assert scored.score == KeepScore("points")(made, context)


def shown(context: Any) -> list[tuple[str, str, str, int]]:
    return [(item.id, item.type, item.text, item.size) for item in items_of(context, NOW, len)]


def test_a_mapping_of_texts_and_values_becomes_items_by_kind() -> None:
    context = {
        "system_prompt": "be kind",
        "current_task": {"content": "fix it"},
        "task_history": [{"id": 7}],
        "active_file": None,
        "messages": ["first", {"role": "assistant", "content": "second"}],
        "last_error": "boom",
    }
    assert shown(context) == [
        ("system_prompt-0", "system_prompt", "be kind", 7),
        ("current_task-0", "current_task", "fix it", 6),
        ("task_history-0", "task_history", '{"id": 7}', 9),
        ("messages-0", "user_message", "first", 5),
        ("messages-1", "assistant_message", "second", 10),
        ("last_error-0", "error", "boom", 4),
    ]


def call(number: int) -> dict[str, Any]:
    return {"id": f"c{number}", "type": "function", "function": {"name": "f", "arguments": "{}"}}


OPENAI = [
    {"role": "system", "content": "s"},
    {"role": "user", "content": [{"type": "text", "text": "look"}]},
    {"role": "assistant", "content": None, "tool_calls": [call(1), call(2)]},
    {"role": "tool", "tool_call_id": "c1", "content": "one"},
    {"role": "tool", "tool_call_id": "c2", "content": "two"},
    {"role": "assistant", "content": "done"},
]
ANTHROPIC = [
    {"role": "user", "content": [{"type": "text", "text": "look"}]},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "c", "is_error": True, "content": "broken"}
        ],
    },
    {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
]


@pytest.mark.parametrize(
    ("messages", "kinds", "bonds"),
    [
        (
            OPENAI,
            [
                "system_prompt", "user_message", "assistant_message", "tool_result", "tool_result",
                "assistant_message",
            ],
            [None, None, "messages-2", "messages-2", "messages-2", None],
        ),
        (
            ANTHROPIC,
            ["user_message", "assistant_message", "error", "assistant_message"],
            [None, "messages-1", "messages-1", None],
        ),
    ],
)  # fmt: skip
def test_messages_of_a_provider_keep_their_form_and_calls_are_bonded_to_results(
    messages: list[Any], kinds: list[str], bonds: list[str | None]
) -> None:
    items = items_of({"messages": messages}, NOW)
    assert [item.type for item in items] == kinds
    assert [item.bond for item in items] == bonds
    assert all(item.value is message for item, message in zip(items, messages, strict=True))


def test_a_single_message_may_be_the_value_of_any_key() -> None:
    context = {"last_user_message": OPENAI[1], "current_task": OPENAI[5]}
    assert [item.type for item in items_of(context, NOW)] == ["user_message", "assistant_message"]


@pytest.mark.parametrize(
    ("context", "field"),
    [
        ({"messages": [{"role": "user", "content": [1]}]}, "messages"),
        ({"metrics": object()}, "metrics"),
    ],
)
def test_what_is_neither_text_nor_message_nor_json_is_refused_by_its_key(
    context: dict[str, Any], field: str
) -> None:
    with pytest.raises(InputError, match=field):
        items_of(context, NOW)


def test_two_items_with_one_id_are_refused() -> None:
    item = ContentItem(id="a", type="note", timestamp=NOW)
    with pytest.raises(InputError, match="same id"):
        items_of([item, item], NOW)
