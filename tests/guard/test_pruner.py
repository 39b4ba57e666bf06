"""ContextPruner: S4's points and steps, from content to a context that fits, with a reason for each piece."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.config import GCConfig
from ctxgc.core import ContextSegment
from ctxgc.errors import InputError, ShortfallError
from ctxgc.guard import (
    Category,
    ContentItem,
    ContextPruner,
    Focus,
    PruneResult,
    aggressive_prune,
)
from tests.requirements import requirement

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FOCUS = Focus(
    now=NOW, current_task_id="t", task_dependencies=frozenset({"d"}), active_file="active.py"
)
OLD = timedelta(hours=3)


def item(name: str, kind: str = "note", /, size: int = 10, **fields: Any) -> ContentItem:
    return ContentItem(**{"id": name, "type": kind, "size": size, "timestamp": NOW, **fields})


def pruner(limit: int = 100, **options: Any) -> ContextPruner:
    return ContextPruner(limit, **{"focus": FOCUS, **options})


def kept(result: PruneResult) -> dict[str, str]:
    return {one.item.id: one.reason for one in result.kept}


def pruned(result: PruneResult) -> dict[str, str]:
    return {one.item.id: one.reason for one in result.pruned}


@requirement("S4.pruner.target")
def test_the_target_is_70_percent_of_the_limit_unless_configured() -> None:
    assert pruner(1_001).target_size == 700
    assert pruner(1_000, config=GCConfig(prune_to_percent=50)).target_size == 500


@requirement("S4.pruner.steps", "S4.recovery.analyze", "S4.recovery.execute")
def test_pruning_categorizes_scores_selects_builds_and_validates() -> None:
    system, request = item("s", "system_prompt"), item("u", "user_message")
    old = item("o", timestamp=NOW - timedelta(hours=5), size=50)
    fresh = item("f", "tool_result", size=40)
    content = [system, old, fresh, request]
    judge = pruner()
    categories = judge.categorize_content(content)
    assert {name: [i.id for i in held] for name, held in categories.items()} == {
        Category.CURRENT_TASK: [],
        Category.RECENT_HISTORY: ["f", "u"],
        Category.OLD_HISTORY: ["o"],
        Category.SYSTEM_PROMPTS: ["s"],
        Category.EXAMPLES: [],
    }
    scored = judge.score_content(categories)
    selected = judge.select_content(scored, 70)
    built = judge.build_context(selected)
    assert built == {"system_prompt": [system], "tool_result": [fresh], "user_message": [request]}
    assert judge.calculate_size(built) == 60
    result = judge.prune(content)
    assert (result.size, result.target, result.aggressive) == (60, 70, False)
    assert kept(result) == {
        "s": "system_role_prompt",
        "f": "recent: 30 points, fits",
        "u": "last_3_user_messages",
    }
    assert pruned(result) == {"o": "old and not referenced recently"}
    assert result == built


@requirement("S4.pruner.sorted")
def test_scored_content_comes_highest_first_and_newer_before_older() -> None:
    earlier = NOW - timedelta(minutes=1)
    content = [item("a", timestamp=earlier), item("b"), item("c", "system_prompt")]
    assert [(one.content.id, one.score) for one in pruner().score_content(content)] == [
        ("c", 50),
        ("b", 30),
        ("a", 30),
    ]


def test_content_that_fits_stays_whole() -> None:
    content = [item("debug", "debug"), item("old", timestamp=NOW - timedelta(days=9))]
    result = pruner().prune(content)
    assert kept(result) == {"debug": "the context fits", "old": "the context fits"}
    assert result.pruned == ()


def test_what_had_no_room_says_so() -> None:
    result = pruner().prune([item("a", size=50), item("b", size=60)])
    assert (kept(result), pruned(result), result.threshold) == (
        {"b": "recent: 30 points, fits"},
        {"a": "recent: 30 points, no room left"},
        30,
    )


def test_a_bonded_piece_that_stays_with_another_says_so() -> None:
    call = item("call", "system_prompt", bond="b")
    result = pruner().prune([call, item("result", "debug", bond="b"), item("big", size=90)])
    assert kept(result) == {"call": "system_role_prompt", "result": "bonded to what stays"}


# -- the points


def points(
    kind: str = "note", /, age: timedelta = timedelta(0), focus: Focus = FOCUS, **fields: Any
) -> int:
    content = item("x", kind, timestamp=NOW - age, **fields)
    (scored,) = pruner(focus=focus).score_content([content])
    return scored.score


@requirement("S4.pruner.recency")
@pytest.mark.parametrize(
    ("minutes", "worth"), [(0, 30), (4.9, 30), (5, 20), (29.9, 20), (30, 10), (119.9, 10), (120, 0)]
)
def test_fresh_content_gets_up_to_30_points(minutes: float, worth: int) -> None:
    assert points(age=timedelta(minutes=minutes)) == worth


def test_a_recent_reference_makes_content_fresh() -> None:
    assert points(age=OLD, last_referenced_at=NOW) == 30


@requirement("S4.pruner.task")
@pytest.mark.parametrize(("task", "worth"), [("t", 40), ("d", 25), ("z", 0), (None, 0)])
def test_the_task_at_hand_gives_up_to_40_points(task: str | None, worth: int) -> None:
    assert points(task_id=task, age=OLD) == worth


def test_without_a_current_task_content_without_a_task_gets_no_points_for_it() -> None:
    assert points(age=OLD, focus=Focus(now=NOW)) == 0


@requirement("S4.pruner.type-points")
@pytest.mark.parametrize(
    ("kind", "worth"),
    [
        ("system_prompt", 20), ("current_task", 20), ("acceptance_criteria", 18),
        ("active_code", 15), ("recent_feedback", 12), ("task_history", 8), ("examples", 5),
        ("anything", 0),
    ],
)  # fmt: skip
def test_the_type_gives_the_points_of_the_table(kind: str, worth: int) -> None:
    assert points(kind, age=OLD) == worth


@requirement("S4.pruner.references")
@pytest.mark.parametrize(("count", "worth"), [(0, 0), (1, 2), (4, 8), (5, 10), (50, 10)])
def test_each_reference_gives_two_points_up_to_ten(count: int, worth: int) -> None:
    assert points(age=OLD, reference_count=count) == worth


def test_the_points_go_up_to_100_also_for_what_is_pinned() -> None:
    assert points("system_prompt", task_id="t", reference_count=5) == 100
    assert points("system_prompt", pinned=True) == 100


# -- the last resort --------------------------------------------------------------------------------

ABSOLUTE = [
    item("system", "system_prompt"),
    item("task", "current_task", task_id="t"),
    item("file", "code", file_path="active.py"),
    item("first", "user_message", timestamp=NOW - timedelta(minutes=2)),
    item("last", "user_message"),
    item("older error", "error", timestamp=NOW - timedelta(minutes=2)),
    item("error", "error"),
    item("criteria", "acceptance_criteria", size=60),
    item("pin", "debug", pinned=True),
]


@requirement(
    "S4.aggressive.system-prompt", "S4.aggressive.current-task", "S4.aggressive.current-file",
    "S4.aggressive.last-user-message", "S4.aggressive.error-context", "S4.pruner.aggressive",
)  # fmt: skip
def test_when_the_essentials_do_not_fit_only_the_absolute_ones_stay() -> None:
    result = pruner().prune(ABSOLUTE)
    assert result.aggressive
    assert kept(result) == {
        "system": "system_prompt",
        "task": "current_task",
        "file": "current_file",
        "last": "last_user_message",
        "error": "error_context",
        "pin": "pinned",
    }
    assert set(pruned(result)) == {"first", "older error", "criteria"}
    assert {name: getattr(value, "id", value) for name, value in result.items()} == {
        "system_prompt": "system",
        "current_task": "task",
        "current_file": "file",
        "last_user_message": "last",
        "error_context": "error",
        "pinned": [ABSOLUTE[-1]],
    }


def test_the_last_resort_works_from_the_full_content() -> None:
    """S4 ran it on what a failed selection had left."""
    assert pruner().prune(ABSOLUTE) == pruner().aggressive_prune(ABSOLUTE)


@given(st.sets(st.sampled_from([one.id for one in ABSOLUTE])))
def test_the_last_resort_does_not_miss_what_is_not_there(names: set[str]) -> None:
    """S4 raised KeyError for every missing part."""
    there = [one for one in ABSOLUTE if one.id in names]
    result = pruner().aggressive_prune(there)
    assert set(kept(result)) | set(pruned(result)) == names


def test_the_last_resort_keeps_bonds_whole() -> None:
    call = item("call", "tool_call", bond="b", pinned=True)
    result = pruner().aggressive_prune([call, item("result", "tool_result", bond="b")])
    assert kept(result) == {"call": "pinned", "result": "bonded"}


def test_what_does_not_even_fit_then_is_named() -> None:
    content = [item("huge", "system_prompt", size=80), item("pin", pinned=True), item("x", size=5)]
    with pytest.raises(ShortfallError, match="20 more than the target of 70") as caught:
        pruner().prune(content)
    assert caught.value.details["parts"] == [
        {"id": "huge", "type": "system_prompt", "tokens": 80},
        {"id": "pin", "type": "note", "tokens": 10},
    ]


# -- other shapes of content ------------------------------------------------------------------------


def test_segments_are_pruned_as_they_are() -> None:
    segments = [
        ContextSegment(
            segment_id="s", text="", type="message", role="system", tokens=10, created_at=NOW
        ),
        ContextSegment(
            segment_id="x", text="", type="log", tokens=90, created_at=NOW - timedelta(days=1)
        ),
    ]
    assert set(kept(pruner().prune(segments))) == {"s"}


def test_a_mapping_as_in_the_seed_comes_back_with_its_keys_and_the_newest_messages() -> None:
    """All of it is equally old: what came last is the newest."""
    messages = [{"role": "assistant", "content": f"{n:03}" * 12} for n in range(20)]
    context = {
        "system_prompt": "s" * 10,
        "current_task": {"title": "t"},
        "active_file": None,
        "messages": messages,
    }
    result = ContextPruner(300, count=len).prune(context)
    assert result == {
        "system_prompt": "s" * 10,
        "current_task": {"title": "t"},
        "messages": messages[-4:],
    }
    assert (result.size, result.target, result.aggressive) == (184, 210, False)
    assert pruned(result)["messages-15"] == "recent: 30 points, no room left"


def test_a_mapping_that_fits_comes_back_as_it_is() -> None:
    context = {"system_prompt": "s", "active_file": None, "messages": []}
    assert ContextPruner(100).prune(context) == context


def test_a_call_of_a_tool_stays_or_goes_with_its_result() -> None:
    exchange: list[dict[str, Any]] = []
    for n in range(10):
        function = {"name": "f", "arguments": "{}"}
        call = {"id": f"c{n}", "type": "function", "function": function}
        exchange.append({"role": "assistant", "content": None, "tool_calls": [call]})
        exchange.append({"role": "tool", "tool_call_id": f"c{n}", "content": "o" * 20})
    result = ContextPruner(150, count=len).prune({"messages": exchange})
    assert result == {"messages": exchange[-4:]}


def test_the_last_resort_for_a_mapping_is_the_one_of_the_seed() -> None:
    said = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "a" * 500}]
    context = {"system_prompt": "s", "current_task": "t", "messages": said, "last_error": "boom"}
    expected = {
        "system_prompt": "s",
        "current_task": "t",
        "current_file": None,
        "last_user_message": said[0],
        "error_context": "boom",
    }
    assert aggressive_prune(context) == expected
    assert ContextPruner(40).prune(context | {"acceptance_criteria": "c" * 500}) == expected
    assert aggressive_prune({}) == dict.fromkeys(expected)


def test_impossible_numbers_are_refused_by_name() -> None:
    with pytest.raises(InputError, match="context_limit"):
        ContextPruner(0)
    with pytest.raises(InputError, match="target"):
        pruner().prune([], target=-1)


# -- promises ---------------------------------------------------------------------------------------

CONTENT = st.lists(
    st.builds(
        lambda n, kind, size, age, task, essential, pin, references, bond: item(
            str(n), kind, size, timestamp=NOW - timedelta(minutes=age), task_id=task,
            is_essential=essential, pinned=pin, reference_count=references, bond=bond,
        ),
        st.integers(),
        st.sampled_from(
            ["system_prompt", "user_message", "error", "debug", "task_history", "note", "examples"]
        ),
        st.integers(0, 40),
        st.integers(0, 200),
        st.sampled_from([None, "t", "z"]),
        st.integers(0, 9).map(lambda n: n == 0),
        st.integers(0, 9).map(lambda n: n == 0),
        st.integers(0, 6),
        st.sampled_from([None, None, None, "b"]),
    ),
    max_size=15,
    unique_by=lambda one: one.id,
)  # fmt: skip


def outcome(content: list[ContentItem], target: int) -> PruneResult | ShortfallError:
    try:
        return pruner().prune(content, target)
    except ShortfallError as error:
        return error


def attempt(content: list[ContentItem], target: int) -> PruneResult | None:
    result = outcome(content, target)
    return None if isinstance(result, ShortfallError) else result


@given(CONTENT, st.integers(0, 150))
def test_the_result_fits_or_the_error_says_by_how_much_it_does_not(
    content: list[ContentItem], target: int
) -> None:
    result = outcome(content, target)
    if isinstance(result, ShortfallError):
        size = sum(part["tokens"] for part in result.details["parts"])
        assert size - target == result.details["tokens_short"] > 0
        return
    assert result.size == sum(one.item.size for one in result.kept) <= target
    both = sorted([*kept(result), *pruned(result)])
    assert both == sorted(one.id for one in content)
    order = [one.id for one in content]
    assert [one.item.id for one in result.kept] == [i for i in order if i in kept(result)]


@given(CONTENT, st.integers(0, 150))
def test_pins_never_leave_and_essentials_leave_only_for_the_last_resort(
    content: list[ContentItem], target: int
) -> None:
    result = attempt(content, target)
    if result is None:
        return
    stayed = set(kept(result))
    assert {one.id for one in content if one.pinned} <= stayed
    if not result.aggressive:
        assert {one.id for one in content if one.is_essential} <= stayed


@given(CONTENT, st.integers(0, 150), st.integers(0, 60))
def test_a_larger_target_never_keeps_fewer_tokens(
    content: list[ContentItem], target: int, more: int
) -> None:
    small, large = attempt(content, target), attempt(content, target + more)
    if small is not None:
        assert large is not None
        assert small.size <= large.size


@given(CONTENT, st.integers(0, 150))
def test_pruning_twice_is_pruning_once(content: list[ContentItem], target: int) -> None:
    result = attempt(content, target)
    if result is not None:
        left = [one.item for one in result.kept]
        again = pruner().prune(left, target)
        assert ([one.item for one in again.kept], again.pruned) == (left, ())
