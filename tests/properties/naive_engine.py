"""The engine a second time, slow and plain: the judge of the first.

Nothing here is shared with `ctxgc.core` but the segment itself. Reachability looks at every pair until
nothing changes, roots are found by scanning, sums by summing. `naive_history` replays what was done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from ctxgc.core import ContextSegment

KINDS = ("path", "tag", "topic")
Links = Collection[tuple[str, str]]


def explicit(segment: ContextSegment) -> set[str]:
    """Return the ids that a segment's own fields name."""
    named = set(segment.references)
    named |= {tag.removeprefix("ref:") for tag in segment.tags if tag.startswith("ref:")}
    return named | ({segment.reply_to, segment.derived_from} - {None})


def all_links(segments: Iterable[ContextSegment]) -> set[tuple[str, str]]:
    """Return every explicit link as a pair."""
    return {(segment.segment_id, target) for segment in segments for target in explicit(segment)}


def lines_meet(a: ContextSegment, b: ContextSegment) -> bool:
    """Tell whether two views of a file share a card of 64 lines; no range, or 64 cards, is all."""
    spans = []
    for segment in (a, b):
        first, last = segment.line_range or (0, 10**9)
        spans.append((first // 64, last // 64))
    if any(last - first >= 64 for first, last in spans):
        return True
    return spans[0][0] <= spans[1][1] and spans[1][0] <= spans[0][1]


def shared_kinds(a: ContextSegment, b: ContextSegment) -> set[str]:
    """Return through which kinds of keys two segments are linked."""
    kinds = set()
    if a.topic_id is not None and a.topic_id == b.topic_id:
        kinds.add("topic")
    if any(tag in b.tags for tag in a.tags if not tag.startswith("ref:")):
        kinds.add("tag")
    if a.file_path is not None and a.file_path == b.file_path and lines_meet(a, b):
        kinds.add("path")
    return kinds


def bond(segment: ContextSegment) -> str | None:
    return segment.bond_id if segment.bond_id is not None else segment.call_id


def bonded(a: ContextSegment, b: ContextSegment) -> bool:
    return bond(a) is not None and bond(a) == bond(b)


def reaches(a: ContextSegment, b: ContextSegment, links: Links, strong: Collection[str]) -> bool:
    """Tell whether a live `a` keeps `b` reachable by one link."""
    if (a.segment_id, b.segment_id) in links:
        return True
    if b.superseded_by is not None:
        return bonded(a, b) and b.part != "tool_result"
    return bonded(a, b) or bool(shared_kinds(a, b) & set(strong))


def reachable(
    segments: Sequence[ContextSegment],
    roots: Collection[str],
    links: Links | None = None,
    strong: Collection[str] = KINDS,
) -> set[str]:
    """Return the working segments that the roots reach: all pairs, until nothing changes."""
    pairs = all_links(segments) if links is None else links
    working = [segment for segment in segments if segment.tier == "working"]
    found = {segment.segment_id for segment in working if segment.segment_id in roots}
    while True:
        more = {
            b.segment_id
            for b in working
            if b.segment_id not in found
            and any(a.segment_id in found and reaches(a, b, pairs, strong) for a in working)
        }
        if not more:
            return found
        found |= more


def reachable_young(
    segments: Sequence[ContextSegment],
    roots: Collection[str],
    links: Links | None = None,
    strong: Collection[str] = KINDS,
) -> set[str]:
    """Return the young that are reachable when every old segment is live."""
    old = {segment.segment_id for segment in segments if segment.generation == "old"}
    found = reachable(segments, {*roots, *old}, links, strong)
    return found - old


def is_said(segment: ContextSegment) -> bool:
    """Tell whether a segment is part of a message, and not of one that the host added by itself."""
    part_of_one = segment.type == "message" or segment.message_id is not None
    return part_of_one and segment.source != "enrichment"


def is_request(segment: ContextSegment) -> bool:
    return segment.role == "user" and is_said(segment) and segment.part != "tool_result"


def message_of(segment: ContextSegment) -> str:
    return segment.message_id or segment.segment_id


def last_messages(working: Sequence[ContextSegment], count: int, *, requests: bool) -> set[str]:
    """Return the segments of the last messages, a message standing where its first part stands."""
    places: dict[str, int] = {}
    wanted: set[str] = set()
    for segment in sorted(working, key=lambda s: s.position):
        if is_said(segment):
            places.setdefault(message_of(segment), len(places))
            if not requests or is_request(segment):
                wanted.add(message_of(segment))
    last = sorted(wanted, key=places.__getitem__)[::-1][:count]
    return {s.segment_id for s in working if is_said(s) and message_of(s) in last}


def open_calls(working: Sequence[ContextSegment]) -> set[str]:
    """Return each tool call that is the last word on its call id."""
    last: dict[tuple[str | None, str], ContextSegment] = {}
    for segment in sorted(working, key=lambda s: s.position):
        if segment.call_id is not None and segment.part in ("tool_call", "tool_result"):
            last[bond(segment), segment.call_id] = segment
    return {segment.segment_id for segment in last.values() if segment.part == "tool_call"}


def in_active(segment: ContextSegment, path: str | None, lines: tuple[int, int] | None) -> bool:
    if path is None or segment.file_path != path or segment.superseded_by is not None:
        return False
    if segment.line_range is None or lines is None:
        return True
    return segment.line_range[0] <= lines[1] and lines[0] <= segment.line_range[1]


def roots(
    segments: Sequence[ContextSegment],
    *,
    now: datetime,
    step: int,
    knobs: Any,
    files: Sequence[str],
    first_request: str | None,
    task: str | None = None,
    active_file: str | None = None,
    active_range: tuple[int, int] | None = None,
    held: Mapping[str, str] | None = None,
) -> dict[str, set[str]]:
    """Return the roots with their reasons, by asking every segment everything.

    `files` are the recent files, newest first; `first_request` names the message that began it all.
    """
    working = sorted((s for s in segments if s.tier == "working"), key=lambda s: s.position)
    messages = last_messages(working, knobs.recent_messages, requests=False)
    requests = last_messages(working, knobs.recent_user_messages, requests=True)
    errors = [s.segment_id for s in working if s.failed and s.superseded_by is None]
    latest_errors = errors[::-1][: knobs.unresolved_errors]
    waiting = open_calls(working)
    window = timedelta(seconds=knobs.decision_window_seconds)
    found: dict[str, set[str]] = {}
    for s in working:
        answers = {
            "pinned": s.pinned,
            "current task": task is not None and s.task_id == task,
            "active file": in_active(s, active_file, active_range),
            "recent file": s.superseded_by is None and s.file_path in files[: knobs.recent_files],
            "recent message": s.segment_id in messages,
            "recent request": s.segment_id in requests,
            "recent decision": bool(window)
            and s.type == "decision"
            and now - s.created_at <= window,
            "instructions": "system" in (s.role, s.source) or s.policy == "locked",
            "original request": knobs.original_request
            and is_said(s)
            and message_of(s) == first_request,
            "unresolved error": s.segment_id in latest_errors,
            "open tool call": s.segment_id in waiting,
            "session invariant": "invariant" in s.tags,
            "recalled": s.protected_until > step,
            (held or {}).get(s.segment_id, ""): s.segment_id in (held or {}),
        }
        reasons = {reason for reason, holds in answers.items() if holds}
        if reasons:
            found[s.segment_id] = reasons
    return found


def tokens_of(segment: ContextSegment) -> int:
    return -(-len(segment.text) // 4) if segment.tokens is None else segment.tokens


def totals(
    segments: Iterable[ContextSegment],
) -> dict[tuple[str, str, str | None], tuple[int, int]]:
    """Return segments and tokens by tier and dimension, by counting them."""
    counts: Counter[tuple[str, str, str | None]] = Counter()
    sums: Counter[tuple[str, str, str | None]] = Counter()
    for s in segments:
        for dimension, value in (
            ("all", None), ("type", s.type), ("task", s.task_id), ("policy", s.policy), ("source", s.source),
        ):  # fmt: skip
            counts[s.tier, dimension, value] += 1
            sums[s.tier, dimension, value] += tokens_of(s)
    return {key: (count, sums[key]) for key, count in counts.items()}
