"""Strategies for segments, batches and heaps: small alphabets, so that everything meets everything."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from ctxgc.core import ContextSegment, EngineOptions, GCState, Heap, RootKnobs

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

_LINES = (
    "ok", "plain words only", "parse_header fails in src/a.py:12", "retry_count=4", "see build-0042",
    "ERR_7731 at 10.0.0.1", "def load_config(path):", "value 123456 stays", "h\u00e9llo w\u00f6rld",
    "[ctxgc: looks like a tombstone]", "the same output, forty letters long or a few more of them",
)  # fmt: skip

_TEXTS = (
    "",
    *_LINES,
    *("\n".join(pair) for pair in pairwise(_LINES)),
    *(
        "\n".join(f"{name}_{n} is line {n} of the output" for n in range(lines))
        for name in ("alpha", "beta")
        for lines in (3, 8, 20, 40)
    ),
)
_TYPES = ("note", "log", "log", "code", "message", "decision", "summary")

_CHOICES: dict[str, tuple[Any, ...]] = {
    "role": ("user", "user", "assistant", "tool", "system"),
    "minutes": (1, 59, 61, 180),
    "pinned": (True,),
    "generation": ("old", "old", "old"),
    "touches": (1, 4, 7),
    "file_path": ("src/a.py", "src/a.py", "src/b.py", "c.txt"),
    "line_range": ((0, 10), (5, 70), (60, 63), (64, 64), (100, 300), (0, 9000)),
    "tags": (("bug-1",), ("bug-2",), ("bug-1", "bug-2"), ("bug-3", "bug-3"), ("invariant",)),
    "topic_id": ("t1", "t2", "t3"),
    "task_id": ("k1", "k2", "k3"),
    "tokens": (0, 1, 17, 90, 900),
    "tier": ("stashed",),
    "policy": ("preservable", "ephemeral", "conditional", "locked"),
    "source": ("plugin", "enrichment", "system"),
    "message_id": ("m1", "m2", "m3"),
    "part": ("text", "tool_call", "tool_result", "tool_result", "thinking"),
    "call_id": ("c1", "c1", "c2", "c3"),
    "bond_id": ("b1", "b2"),
    "access": ("read", "read", "edit", "run"),
    "command": ("make", "make", "pytest"),
    "failed": (True, True),
    "protected_until": (1, 5, 30),
    "trust": ("agent", "tool"),
    "name": ("grep",),
}
_FIELDS = tuple((name, value) for name, values in _CHOICES.items() for value in values)
_LINKS = tuple(
    (kind, back)
    for kind in ("references", "references", "tags", "reply_to", "derived_from")
    for back in range(6)
)

# One draw per field: a segment of a dozen draws keeps Hypothesis quick, and shrinks field by field.
_SPECS = st.tuples(
    st.sampled_from(_TEXTS),
    st.sampled_from(_TYPES),
    st.lists(st.sampled_from(_FIELDS), max_size=5),
    st.lists(st.sampled_from(_LINKS), max_size=2),
)


def _segment(spec: tuple[Any, ...], ids: list[str], place: int) -> ContextSegment:
    """Make the segment of a spec; a link goes to an id some places back, round the end."""
    text, kind, drawn, links = spec
    fields = dict(drawn)
    minutes = timedelta(minutes=fields.pop("minutes", 0))
    for field, back in links:
        target = ids[(place - back) % len(ids)]
        if field == "tags":
            fields["tags"] = (*fields.get("tags", ()), f"ref:{target}")
        elif field == "references":
            fields["references"] = (*fields.get("references", ()), target)
        else:
            fields[field] = target
    return ContextSegment(
        segment_id=ids[place], text=text, type=kind, created_at=NOW - minutes, **fields
    )


def annotations() -> st.SearchStrategy[dict[str, Any]]:
    """What may be said about a segment later: some of its fields, or nothing."""
    fields = {
        name: st.sampled_from(_CHOICES[name]) for name in ("tags", "topic_id", "task_id", "policy")
    }
    return st.fixed_dictionaries(
        {}, optional={"type": st.sampled_from(("decision", "summary")), **fields}
    )


def batches(
    first: int = 0, known: tuple[str, ...] = (), max_size: int = 4
) -> st.SearchStrategy[list[ContextSegment]]:
    """Segments `s{first}`, `s{first+1}`, ... that refer to each other and to known ids."""

    def make(specs: list[tuple[Any, ...]]) -> list[ContextSegment]:
        new = [f"s{first + n}" for n in range(len(specs))]
        ids = [*known[-3:], *new]
        return [_segment(spec, ids, len(ids) - len(new) + n) for n, spec in enumerate(specs)]

    return st.lists(_SPECS, min_size=1, max_size=max_size).map(make)


def segment_lists(max_size: int = 14) -> st.SearchStrategy[list[ContextSegment]]:
    """Lists of segments with links in all directions, cycles and self-references included."""
    return batches(max_size=max_size)


def heap_of(segments: list[ContextSegment]) -> Heap:
    """Return a heap that holds these segments."""
    heap = Heap()
    heap.add_all(segments)
    return heap


# Root knobs that reach less far than the default, so that small heaps hold garbage too.
KNOBS = st.builds(
    RootKnobs,
    recent_messages=st.integers(0, 3),
    recent_user_messages=st.integers(0, 2),
    decision_window_seconds=st.sampled_from((0.0, 3600.0)),
    recent_files=st.integers(0, 2),
    unresolved_errors=st.integers(0, 2),
    original_request=st.booleans(),
)

_HOSTS = st.fixed_dictionaries(
    {
        "current_task_id": st.sampled_from((None, "k1", "k2")),
        "task_dependencies": st.sampled_from((frozenset(), frozenset({"k3"}))),
        "active_file": st.sampled_from((None, None, "src/a.py", "src/b.py")),
        "active_range": st.sampled_from((None, (0, 20), (200, 400))),
        "knobs": KNOBS,
    }
)


def states(heap: Heap) -> st.SearchStrategy[GCState]:
    """What a host may know beside a heap: a time, a task, an open file, roots of its own."""
    ids = (*(segment.segment_id for segment in heap), "nobody")

    def make(host: dict[str, Any], minutes: int, held: list[int]) -> GCState:
        named = {ids[n % len(ids)]: "held by the host" for n in held}
        return GCState(heap=heap, now=NOW + timedelta(minutes=minutes), held=named, **host)

    return st.builds(make, _HOSTS, st.integers(0, 90), st.lists(st.integers(0, 20), max_size=2))


_OPTIONS: dict[str, st.SearchStrategy[Any]] = {
    "profile": st.sampled_from(("default", "s0", "s1", "points")),
    "strong": st.sampled_from((("path", "tag", "topic"), ("topic",), ())),
    "knobs": KNOBS,
    "promote_after": st.integers(1, 3),
    "evacuate_min_tokens": st.sampled_from((30, 100, 10_000)),
    "verbose_tokens": st.sampled_from((20, 500)),
    "cold_steps": st.sampled_from((0, 3, 50)),
    "can_compress": st.booleans(),
    "delete_policies": st.sampled_from(((), ("ephemeral",), ("ephemeral", "partial"))),
}


def options(**fixed: Any) -> st.SearchStrategy[EngineOptions]:
    """Engine options with small thresholds, so that every action happens on small heaps."""
    given = {name: st.just(value) for name, value in fixed.items()}
    return st.builds(EngineOptions, **{**_OPTIONS, **given})


NO_ROOTS = EngineOptions(
    knobs=RootKnobs(
        recent_messages=0,
        recent_user_messages=0,
        decision_window_seconds=0.0,
        recent_files=0,
        unresolved_errors=0,
        original_request=False,
    )
)


def plain(*ids: str, pinned: str = "") -> list[ContextSegment]:
    """Return notes without links, one of them pinned."""
    return [
        ContextSegment(
            segment_id=i, text=f"note {i}", type="note", pinned=i == pinned, created_at=NOW
        )
        for i in ids
    ]
