"""A made-up past of a session for the dashboard: as many requests and segments as are asked for.

timeline(requests=10_000, segments=5_000)   # what `GET api/sessions/{id}/timeline` answers
"""

from __future__ import annotations

from typing import Any

LIMIT = 200_000
SOURCES = ("message", "call", "result", "thinking", "result", "reminder")
POLICIES = ("partial", "ephemeral", "ephemeral", "partial", "ephemeral", "preservable")
WHY = "superseded: src/module_{}.py was read again at request {}"


def row(requests: int, **other: Any) -> dict[str, Any]:
    """Return the line of the session in the list of sessions."""
    return {
        "id": "stored.made", "kind": "stored", "title": "A made-up session", "project": "/home/u/shop",
        "agent": "claude-code", "model": "claude-sonnet-4-5", "started_at": "2026-11-18T10:00:00Z",
        "updated_at": "2026-11-18T12:00:00Z", "requests": requests, "tokens": 120_000, "limit": LIMIT,
        "percent": 60.0, "zone": "safe", "cost": 12.5, "cost_today": 2.25, "saved": 4.125,
        "saved_percent": 24.8, "cold_in_seconds": 240, "parent": None, "turns_left": 31, **other,
    }  # fmt: skip


def timeline(requests: int, segments: int) -> dict[str, Any]:
    """Return requests, segments and changes: each segment is whole, then a stub, then gone."""
    made = [_segment(number, requests, segments) for number in range(segments)]
    changes = [change for segment in made for change in _changes(segment, requests)]
    sizes = _sizes(made, requests)
    return {
        "row": row(requests),
        "requests": [*(_request(n, sizes[n], requests) for n in range(1, requests + 1)),
                     _now(requests + 1, sizes[requests])],
        "segments": made,
        "changes": sorted(changes, key=lambda change: change["request"]),
    }  # fmt: skip


def _segment(number: int, requests: int, segments: int) -> dict[str, Any]:
    first = 1 + number * requests // segments
    life = max(2, requests // 8 + number * 37 % (requests // 8 + 1))
    whole = 40 + number * 7919 % 900
    spans: list[list[Any]] = [[first, min(requests + 1, first + life), whole, "whole", "alive"]]
    if first + life < requests:
        spans.append([first + life + 1, min(requests + 1, first + life + life // 2), whole // 6,
                      "stub", "superseded"])  # fmt: skip
    kind = number % len(SOURCES)
    is_file = SOURCES[kind] in ("call", "result")
    return {
        "id": f"s-{number}", "label": f"Read src/module_{number}.py" if is_file else f"words number {number}",
        "source": "system" if number == 0 else SOURCES[kind], "policy": POLICIES[kind],
        "role": "user" if kind in (0, 2) else "assistant", "tool": "Read" if is_file else None,
        "file": f"src/module_{number}.py" if is_file else None, "tokens": whole, "spans": spans,
    }  # fmt: skip


def _changes(segment: dict[str, Any], requests: int) -> list[dict[str, Any]]:
    number = segment["id"][2:]
    found = []
    for place, (_, to, tokens, _, _) in enumerate(segment["spans"]):
        if to > requests:
            continue
        kind = "shrunk" if place == 0 and len(segment["spans"]) > 1 else "left"
        found.append({
            "request": to + 1, "segment": segment["id"], "kind": kind, "why": WHY.format(number, to),
            "tokens": tokens, "handle": f"h-{number}", "collection": 1 + to * 20 // requests,
        })  # fmt: skip
    return found


def _sizes(segments: list[dict[str, Any]], requests: int) -> list[int]:
    steps = [0] * (requests + 3)
    for segment in segments:
        for first, last, tokens, _, _ in segment["spans"]:
            steps[first] += tokens
            steps[last + 1] -= tokens
    sizes, size = [], 0
    for step in steps:
        size += step
        sizes.append(size)
    return sizes


def _request(n: int, tokens: int, requests: int) -> dict[str, Any]:
    every = max(2, requests // 20)
    marks = ["collection"] if n % every == 0 else []
    marks += ["cache_break"] if n % every == every // 2 else []
    marks += ["compaction"] if n == requests // 2 + 1 else []
    is_hit = "cache_break" not in marks
    return {
        "n": n, "at": f"2026-11-18T{10 + n * 2 // (requests + 1):02}:{n % 60:02}:00Z", "tokens": tokens,
        "limit": LIMIT, "input": 12, "cache_read": tokens - 500 if is_hit else 0,
        "cache_write": 488 if is_hit else tokens - 12, "output": 300, "cost": 0.01 if is_hit else 0.2,
        "cache": "hit" if is_hit else "miss", "cache_cause": None if is_hit else "the text before it changed",
        "marks": marks,
    }  # fmt: skip


def _now(n: int, tokens: int) -> dict[str, Any]:
    return {
        "n": n, "at": None, "tokens": tokens, "limit": LIMIT, "input": 0, "cache_read": 0, "cache_write": 0,
        "output": 0, "cost": None, "cache": None, "cache_cause": None, "marks": ["now"],
    }  # fmt: skip
