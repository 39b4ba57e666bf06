"""Tombstones: the short text left where a segment was."""

from __future__ import annotations

from typing import Any

import pytest

from ctxgc.core import describe, is_tombstone
from ctxgc.core.tombstone import long_tombstone
from tests.core.build import seg


def test_a_tombstone_says_what_it_was_why_it_left_and_how_to_get_it_back() -> None:
    segment = seg("s-7", file_path="src/a.py", line_range=(1, 9), access="read", tokens=420)
    text = long_tombstone(
        segment, "unreachable", handle="s-7", names=("parse_header", "a_b"), kept="one\ntwo"
    )
    assert text == (
        "[ctxgc: read of src/a.py:1-9 moved out, 420 tokens: unreachable. Names: parse_header, a_b. "
        'To see it again: context_recall(handle="s-7")]\none\ntwo'
    )


def test_without_a_handle_nothing_is_promised() -> None:
    assert (
        long_tombstone(seg("a", tokens=3), "old", handle="")
        == "[ctxgc: log moved out, 3 tokens: old]"
    )


def test_the_recall_call_is_the_one_that_the_door_has() -> None:
    text = long_tombstone(seg("a"), "old", handle="{h}", recall="recall {handle} now")
    assert text.endswith("To see it again: recall {h} now]")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"name": "grep", "file_path": "a.py"}, "log 'grep'"),
        ({"file_path": "a.py", "type": "code"}, "code of a.py"),
        ({"file_path": "a.py", "access": "edit"}, "edit of a.py"),
        ({"command": "make test"}, "output of make test"),
        ({"command": "x" * 100}, f"output of {'x' * 77}..."),
        ({"type": "note"}, "note"),
    ],
)
def test_a_segment_is_described_in_a_few_words(fields: dict[str, Any], expected: str) -> None:
    assert describe(seg("a", **fields)) == expected


def test_a_tombstone_is_known_by_its_opening() -> None:
    assert is_tombstone(long_tombstone(seg("a"), "why", handle="a"))
    assert not is_tombstone("a text about [ctxgc: tombstones]")
