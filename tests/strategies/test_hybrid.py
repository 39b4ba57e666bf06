"""gc_hybrid: recent turns stay, middle ones are summarised, ancient ones go."""

from __future__ import annotations

from typing import Any

from tests.requirements import requirement
from tests.strategies.build import collect, ids, requests, size_of, talk


def brief(conversation: str) -> str:
    return "In brief."


def by_reason(result: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for item in result.removal_list:
        found.setdefault(item.reason, []).extend(item.message_ids)
    return found


OPTIONS = {"preserve_recent_turns": 2, "summarize_middle_turns": 3, "summarizer": brief}


@requirement(
    "S3.hybrid.recent-kept",
    "S3.hybrid.middle-summarized",
    "S3.hybrid.ancient-truncated",
    "S2.plugins.hybrid-ancient",
    "S2.plugins.hybrid-middle",
)
def test_each_generation_is_treated_in_its_own_way() -> None:
    history = talk(10)
    new, result = collect("gc_hybrid", history, target=0, limit=9_999, options=OPTIONS)
    assert by_reason(result) == {
        "ancient_truncated": ids(history[1:10]),
        "middle_summarized": ids(history[10:16]),
    }
    assert ids(new) == ["m0", "gc_summary_1", *ids(history[16:])]
    assert result.details["summary_tokens"] == size_of([m for m in new if m.origin == "gc_summary"])


@requirement("S3.options.summarize-middle-turns")
def test_the_number_of_middle_turns_is_an_option() -> None:
    history = talk(10)
    wide = {**OPTIONS, "summarize_middle_turns": 7}
    _, result = collect("gc_hybrid", history, target=0, limit=9_999, options=wide)
    assert len(by_reason(result)["middle_summarized"]) == 14
    assert len(by_reason(result)["ancient_truncated"]) == 1


@requirement("S3.hybrid.summarizer-optional")
def test_without_a_summarizer_the_middle_is_truncated_too() -> None:
    history = talk(10)
    options = {"preserve_recent_turns": 2, "summarize_middle_turns": 3}
    new, result = collect("gc_hybrid", history, target=0, limit=9_999, options=options)
    assert requests(new) == [0, 8, 9]
    assert set(by_reason(result)) == {"ancient_truncated", "middle_truncated"}


def test_the_middle_stays_as_it_is_while_the_ancient_suffice() -> None:
    history = talk(10)
    target = size_of(history) - size_of(history[1:6])
    _, result = collect("gc_hybrid", history, target=target, options=OPTIONS)
    assert set(by_reason(result)) == {"ancient_truncated"}


def test_a_failing_summarizer_is_relieved_by_an_extract() -> None:
    def fails(conversation: str) -> str:
        raise ValueError("no")

    history = talk(10)
    options = {**OPTIONS, "summarizer": fails}
    new, result = collect("gc_hybrid", history, target=400, options=options)
    assert result.success
    assert result.tokens_after < result.tokens_before
    assert requests(new)[-2:] == [8, 9]
