"""What a live segment can become instead of leaving."""

from __future__ import annotations

from typing import Any

import pytest

from ctxgc.collector.sweep import Shrinker, Shrunk
from ctxgc.core import ContextSegment, EngineOptions, is_tombstone
from tests.core.build import heap_of, seg

TEXT = "\n".join(["plain words without a name in them"] * 80 + ["parse_header fails"])


def shrunk(segment: ContextSegment, **options: Any) -> tuple[Shrunk | None, str | None]:
    heap = heap_of(segment)
    shrinker = Shrinker(heap, EngineOptions(cold_steps=0, **options))
    return shrinker.shrink(heap.get(segment.segment_id)), shrinker.stubs.get(segment.segment_id)


def test_a_large_output_is_evacuated_to_its_live_lines() -> None:
    found, stub = shrunk(seg("a", TEXT))
    assert stub is not None
    assert is_tombstone(stub)
    assert "\n[...]\nparse_header fails" in stub
    assert 'context_recall(handle="a")' in stub
    tokens = (len(TEXT) + 3) // 4
    assert found == Shrunk("evacuate", tokens - (len(stub) + 3) // 4)


def test_where_nothing_can_be_recalled_no_handle_is_named() -> None:
    _, stub = shrunk(seg("a", TEXT), recall_call=None)
    assert stub is not None
    assert "To see it again" not in stub


def test_what_others_hold_does_not_stay_unless_they_leave_too() -> None:
    heap = heap_of(seg("a", TEXT), seg("b", "parse_header"))
    shrinker = Shrinker(heap, EngineOptions())
    shrinker.shrink(heap.get("a"))
    assert "parse_header" not in shrinker.stubs["a"]
    shrinker.leaving.add("b")
    shrinker.shrink(heap.get("a"))
    assert "parse_header" in shrinker.stubs["a"]


def test_a_long_and_cold_segment_is_compressed_when_somebody_can() -> None:
    note = seg("a", TEXT, type="note")
    tokens = (len(TEXT) + 3) // 4
    found, stub = shrunk(note, can_compress=True)
    assert found == Shrunk("compress", tokens - tokens // 4)
    assert stub is not None
    assert is_tombstone(stub)
    assert shrunk(note) == (None, None)


def test_a_summary_without_room_for_a_stub_is_not_tried() -> None:
    note = seg("a", "short words", type="note")
    assert shrunk(note, can_compress=True, verbose_tokens=1) == (None, None)


@pytest.mark.parametrize(
    "fields",
    [
        {"tokens": 399},
        {"type": "message"},
        {"part": "tool_call"},
        {"part": "thinking"},
        {"part": "media"},
        {"superseded_by": "b"},
    ],
)
def test_what_is_small_signed_parsed_or_stale_is_not_rewritten(fields: dict[str, Any]) -> None:
    assert shrunk(seg("a", TEXT, **fields), verbose_tokens=10_000) == (None, None)


def test_a_stub_is_not_shrunk_again() -> None:
    assert shrunk(seg("a", f"[ctxgc: log moved out]\n{TEXT}"), can_compress=True) == (None, None)


def test_a_text_whose_every_line_is_alone_is_not_evacuated_for_nothing() -> None:
    dense = "\n".join(f"n_{n}" for n in range(600))
    found, _ = shrunk(seg("a", dense))
    assert found is None or found.freed >= 0.3 * ((len(dense) + 3) // 4)
