"""Segments and heaps as JSON, there and back without a difference."""

from __future__ import annotations

import json
from datetime import timedelta, timezone
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from ctxgc.collector import GCEngine
from ctxgc.core import (
    SEGMENT_FIELDS,
    ContextSegment,
    EngineOptions,
    Heap,
    RootKnobs,
    segment_from_dict,
    segment_to_dict,
)
from ctxgc.core.codec import FORMAT_VERSION, heap_from_json, heap_to_json
from ctxgc.core.segment import segment_schema
from ctxgc.errors import InputError, SegmentError
from tests.core.build import BIG, NOW, heap_of, seg, state
from tests.requirements import requirement

FULL: dict[str, Any] = {
    "text": "a\x00b \ud800 \U0001f600",
    "type": "code",
    "segment_id": "s-1",
    "role": "tool",
    "created_at": NOW,
    "last_touched_at": NOW.astimezone(timezone(timedelta(hours=5))),
    "created_step": 3,
    "last_touched_step": 4,
    "pinned": True,
    "generation": "old",
    "gc_survival_count": 2,
    "refcount": 1,
    "touches": 6,
    "references": ("a", "b"),
    "reply_to": "c",
    "derived_from": "d",
    "file_path": "src/a.py",
    "line_range": (1, 9),
    "tags": ("x", "ref:e"),
    "topic_id": "topic",
    "task_id": "task",
    "project_id": "../escape",
    "tokens": 0,
    "tier": "stashed",
    "policy": "conditional",
    "source": "plugin",
    "message_id": "m",
    "part": "tool_result",
    "call_id": "k",
    "bond_id": "bond",
    "access": "read",
    "command": "cat",
    "failed": True,
    "superseded_by": "z",
    "superseded_how": "re-read",
    "protected_until": 8,
    "position": 5,
    "trust": "tool",
    "name": "grep",
}


@requirement("S0.segment.json")
def test_a_segment_with_every_field_set_comes_back_equal() -> None:
    assert set(FULL) == set(SEGMENT_FIELDS)
    segment = ContextSegment(**FULL)
    data = json.loads(json.dumps(segment_to_dict(segment)))
    assert segment_from_dict(data) == segment
    assert [name for name in SEGMENT_FIELDS if name not in data] == []


@requirement("S0.segment.json")
def test_the_schema_names_every_field_and_the_words_of_a_choice() -> None:
    schema = segment_schema()
    fields = schema["$defs"]["ContextSegment"]
    assert sorted(fields["properties"]) == sorted(SEGMENT_FIELDS)
    assert sorted(fields["required"]) == ["text", "type"]
    assert fields["properties"]["generation"]["enum"] == ["old", "young"]
    json.dumps(schema)


def test_text_and_type_are_enough() -> None:
    made = segment_from_dict({"text": "x", "type": "log"})
    assert (made.text, made.type, made.tier) == ("x", "log", "working")


@pytest.mark.parametrize(
    ("data", "field", "hint"),
    [
        ({"text": "x", "type": "log", "tag": []}, "tag", "did you mean 'tags'?"),
        ({"text": "x", "type": "log", "zzzzzz": 1}, "zzzzzz", "leave it out"),
        ({"text": "x", "type": "log", "tokens": -1}, "tokens", None),
        ({"text": "x", "type": "log", "tokens": "5"}, "tokens", None),
        ({"text": "x", "type": "poem"}, "type", None),
        ({"text": 5, "type": "log"}, "text", None),
        ({"text": "x", "type": "log", "created_at": "2026-03-01T00:00:00"}, "created_at", None),
        ({"text": "x", "type": "log", "created_at": "yesterday"}, "created_at", None),
        ({"type": "log"}, "text", None),
        ({"text": "x", "type": "log", "tags": ["a", 1]}, "tags", None),
    ],
)
def test_a_bad_key_or_value_is_refused_by_its_name(
    data: dict[str, Any], field: str, hint: str | None
) -> None:
    with pytest.raises(SegmentError) as caught:
        segment_from_dict(data)
    assert caught.value.details["field"] == field
    assert hint is None or caught.value.hint == hint


# -- heaps -----------------------------------------------------------------------------------------


def lived_in(size: int) -> Heap:
    """Return a heap with every kind of link, bond, stub, stash and deletion in it."""
    random, heap = Random(5), Heap()
    heap.add_all(_segment(random, n) for n in range(size))
    engine = GCEngine(
        EngineOptions(can_compress=True, cold_steps=10, knobs=RootKnobs(recent_files=1))
    )
    for n in range(0, size, 97):
        heap.pin(f"s{n}")
    engine.collect(heap, now=NOW, free_tokens=heap.ledger.working.tokens // 2)
    stashed = [s.segment_id for s in heap if s.tier == "stashed"]
    for segment_id in stashed[::9]:
        heap.recall(segment_id)
    for segment_id in stashed[1::9]:
        heap.remove(segment_id)
    heap.open_file("src/m1.py")
    for _ in range(3):
        engine.step(heap, now=NOW)
    return heap


def _segment(random: Random, n: int) -> ContextSegment:
    earlier = [f"s{random.randrange(n)}"] if n and random.random() < 0.2 else []
    return seg(
        f"s{n}",
        random.choice((f"name_{n % 50} in src/m{n % 9}.py \ud800", f"\x00 line {n}", BIG)),
        type=random.choice(("message", "code", "log", "note", "decision")),
        role=random.choice(("user", "assistant", "tool", None)),
        references=earlier,
        file_path=random.choice((f"src/m{n % 9}.py", None)),
        access=random.choice(("read", "edit", None)),
        command=random.choice((f"make {n % 40}", None, None)),
        failed=random.random() < 0.1,
        topic_id=random.choice((f"t{n % 60}", None, None)),
        task_id=f"k{n // 50}",
        bond_id=random.choice((f"b{n // 2}", None)),
    )


def test_a_heap_of_ten_thousand_segments_comes_back_unchanged_and_plans_the_same() -> None:
    heap = lived_in(10_000)
    saved = heap_to_json(heap)
    again = heap_from_json(saved)
    assert heap_to_json(again) == saved
    assert (list(again), again.references, again.backrefs) == (
        list(heap),
        heap.references,
        heap.backrefs,
    )
    assert again.links.remembered == heap.links.remembered
    assert again.ledger.by("task") == heap.ledger.by("task")
    for engine in (GCEngine(), GCEngine(EngineOptions(profile="s0", can_compress=True))):
        for need in (None, 5_000, 10**9):
            plans = [engine.plan(state(one), free_tokens=need) for one in (heap, again)]
            assert plans[0] == plans[1]
            assert plans[0].candidates


def test_a_heap_read_back_goes_on_like_the_one_that_was_saved() -> None:
    heap = lived_in(300)
    again = heap_from_json(heap_to_json(heap))
    engine = GCEngine(
        EngineOptions(context_limit=heap.ledger.working.tokens, soft_limit_percent=60.0)
    )
    random = Random(6)
    for n in range(300, 340):
        segment = replace(_segment(random, n), references=())
        for one in (heap, again):
            engine.update(one, [segment], now=NOW)
    assert heap_to_json(again) == heap_to_json(heap)
    assert engine.plan(heap, now=NOW) == engine.plan(again, now=NOW)


def test_a_heap_may_be_written_for_people() -> None:
    heap = heap_of(seg("a"))
    assert heap_to_json(heap, indent=2).startswith('{\n  "format": 1,')
    assert heap_to_json(heap_from_json(heap_to_json(heap, indent=2))) == heap_to_json(heap)


def broken(**changes: Any) -> str:
    data = json.loads(heap_to_json(heap_of(seg("a"), seg("b", references=["a"]))))
    return json.dumps({**data, **changes})


def first_segment(**changes: Any) -> list[dict[str, Any]]:
    return [{**segment_to_dict(seg("a")), **changes}]


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("", "heap"),
        ("{", "heap"),
        ("[" * 100_000, "heap"),
        ("[]", "heap"),
        ("{}", "heap"),
        (b"\xff\xfe\xfa", "heap"),
        (broken(extra=1), "heap"),
        (broken(step="3"), "heap"),
        (broken(format=FORMAT_VERSION + 1), "format"),
        (broken(segments=first_segment(references=["ghost"])), "segment_id"),
        (broken(segments=first_segment() * 2), "segment_id"),
        (broken(segments=first_segment(tokens=-1)), "tokens"),
        (broken(segments=first_segment(colour="red")), "colour"),
    ],
)
def test_what_is_no_saved_heap_is_refused(text: str | bytes, field: str) -> None:
    with pytest.raises(InputError) as caught:
        heap_from_json(text)
    assert caught.value.details["field"] == field
