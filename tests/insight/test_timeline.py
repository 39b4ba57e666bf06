"""The window of a session at each of its requests: recorded by an agent, or kept in a store."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from ctxgc.insight import (
    SessionTimeline,
    analyze_transcript,
    open_transcript,
    recorded_detail,
    session_cost,
    stored_detail,
    timeline_of,
    timeline_of_stored,
)
from ctxgc.insight.garbage import REASONS
from ctxgc.session import Store, open_store
from ctxgc.session.journal import MOST_KEPT, change_writes, read_journal
from ctxgc.stores import Drop, Put
from tests.dashboard.places import START, worked
from tests.wire.transcripts import made
from tools.requirement_scan import ROOT

REAL = ROOT.parent / "shared" / "data" / "claude_code_raw"
STEPS = made.conversation(turns=8, lines=60)


def _recorded(tmp_path: Path, **options: int) -> tuple[Path, SessionTimeline]:
    path = made.write_lines(tmp_path / "a.jsonl", made.claude_code(STEPS, **options))
    return path, timeline_of(open_transcript(path))


def shown_at(timeline: SessionTimeline, request: int) -> dict[str, int]:
    """Return what the window held at a request, with its tokens."""
    return {
        segment.id: span.tokens
        for segment in timeline.segments
        for span in segment.spans
        if span.first <= request <= span.last
    }


def _statuses(timeline: SessionTimeline, request: int) -> dict[str, int]:
    found: dict[str, int] = {}
    for segment in timeline.segments:
        for span in segment.spans:
            if span.first <= request <= span.last:
                found[span.status] = found.get(span.status, 0) + span.tokens
    return found


# -- Recorded sessions


def test_the_strip_at_a_request_adds_up_to_what_it_sent(tmp_path: Path) -> None:
    _, timeline = _recorded(tmp_path)
    for request in timeline.requests[:-1]:
        held = sum(shown_at(timeline, request.n).values())
        assert abs(held - request.tokens) <= len(timeline.segments) + 0.02 * request.tokens


def test_the_last_entry_is_the_window_now_with_the_figures_of_analyze(tmp_path: Path) -> None:
    path, timeline = _recorded(tmp_path)
    found, now = analyze_transcript(open_transcript(path)), timeline.requests[-1]
    assert (now.n, now.marks) == (found.requests + 1, ["now"])
    assert (now.tokens, now.limit) == (found.window.tokens, found.window.limit)
    statuses = _statuses(timeline, now.n)
    garbage = {each.reason: each.tokens for each in found.garbage.reasons if each.tokens}
    assert {name: statuses[name] for name in REASONS if name in statuses} == garbage


def test_its_requests_cost_what_ctxgc_cost_says(tmp_path: Path) -> None:
    path, timeline = _recorded(tmp_path)
    dollars = sum(request.cost or 0.0 for request in timeline.requests)
    assert dollars == pytest.approx(session_cost(path).main.dollars)


def test_a_compaction_takes_what_it_did_not_keep_and_says_so(tmp_path: Path) -> None:
    _, timeline = _recorded(tmp_path, compact_after=6)
    first = next(each.n for each in timeline.requests if "compaction" in each.marks)
    before, after = shown_at(timeline, first - 1), shown_at(timeline, first)
    gone = {each.segment for each in timeline.changes}
    assert {each.kind for each in timeline.changes} == {"compacted"}
    assert before.keys() - after.keys() <= gone
    assert not gone & after.keys()
    assert "cache_break" in timeline.requests[first - 1].marks
    assert timeline.requests[first - 1].cache_cause == "compaction"


def test_segments_are_spans_and_no_lists_of_requests(tmp_path: Path) -> None:
    _, timeline = _recorded(tmp_path)
    assert max(len(segment.spans) for segment in timeline.segments) <= 3
    for segment in timeline.segments:
        ends = [(span.first, span.last) for span in segment.spans]
        assert all(first <= last for first, last in ends)
        assert all(a[1] < b[0] for a, b in pairwise(ends))


@pytest.mark.parametrize("name", made.EVERY_FORMAT)
def test_every_format_has_a_timeline(name: str, tmp_path: Path) -> None:
    path = made.write_format(name, tmp_path, STEPS)
    timeline = timeline_of(open_transcript(path))
    assert len(timeline.requests) == 33
    assert {"message", "call", "result"} <= {segment.source for segment in timeline.segments}


def test_a_segment_of_any_window_is_found_again(tmp_path: Path) -> None:
    path, timeline = _recorded(tmp_path, compact_after=6)
    first, last = timeline.segments[1], timeline.segments[-1]
    for segment in (first, last):
        detail = recorded_detail(open_transcript(path), segment.id)
        assert detail.reasons[0].rule == "standing"
        assert detail.text
    assert first.label in " ".join(recorded_detail(open_transcript(path), first.id).text.split())


def test_real_sessions_add_up(tmp_path: Path) -> None:
    if not REAL.is_dir():
        pytest.skip("the recorded sessions are not on this machine")
    for path in sorted(REAL.glob("*.gz")):
        timeline = timeline_of(open_transcript(path))
        now = timeline.requests[-1]
        held = sum(shown_at(timeline, now.n).values())
        assert abs(held - now.tokens) <= len(timeline.segments)


# -- Stored sessions


@pytest.fixture
def store() -> Store:
    """A store with a session that worked, was collected, undone, collected again, and recalled from."""
    found = open_store("memory:")
    with worked(found) as session:
        session.collect(8_000)
        session.messages()
        session.undo()
        session.messages()
        session.collect(8_000)
        session.messages()
        stashed = [s for s in session.segments() if s.tier == "stashed" and s.part == "tool_result"]
        session.recall(stashed[0].segment_id)
        session.pin(stashed[0].segment_id)
        session.messages()
    return found


def test_each_request_of_a_stored_session_holds_what_it_sent(store: Store) -> None:
    timeline = timeline_of_stored(store, "s")
    assert len(timeline.requests) == 20
    for request in timeline.requests[:-1]:
        held = sum(shown_at(timeline, request.n).values())
        # Besides its parts a message costs a few tokens.
        assert 0 <= request.tokens - held <= 8 * len(shown_at(timeline, request.n)), request


def test_what_left_and_came_back_is_there_with_the_evidence(store: Store) -> None:
    timeline = timeline_of_stored(store, "s")
    marks = [mark for request in timeline.requests for mark in request.marks]
    assert {"collection", "recall", "cache_break", "now"} <= set(marks)
    kinds = {each.kind for each in timeline.changes}
    assert kinds == {"left", "shrunk", "came_back"} or kinds == {"shrunk", "came_back"}
    whys = {each.why for each in timeline.changes if each.kind == "came_back"}
    assert whys == {"the collection was undone", "it was recalled"}
    for change in timeline.changes:
        if change.kind == "shrunk":
            assert change.collection is not None
            assert change.handle is not None
            assert (
                "superseded" in change.why or "had to go" in change.why or "no longer" in change.why
            )


def test_an_undone_collection_is_in_the_strip_for_the_requests_that_it_lasted(store: Store) -> None:
    timeline = timeline_of_stored(store, "s")
    sizes = [request.tokens for request in timeline.requests]
    collected = [r.n for r in timeline.requests if "collection" in r.marks and r.n > 15]
    first = collected[0]
    assert shown_at(timeline, first) != shown_at(timeline, first - 1)
    # A note that comes back is another segment of the same text.
    assert sorted(shown_at(timeline, first + 1).values()) == sorted(
        shown_at(timeline, first - 1).values()
    )
    assert sizes[first - 1] < sizes[first - 2]


def test_what_the_provider_counted_is_what_a_request_cost() -> None:
    found = open_store("memory:")
    with worked(found, steps=1) as session:
        session.messages()
        session.report_usage(1_000, cache_read=600, cache_write=300, output_tokens=50)
    request = timeline_of_stored(found, "s").requests[2]
    assert (request.input, request.cache_read, request.cache_write, request.output) == (
        100,
        600,
        300,
        50,
    )
    assert request.cost == pytest.approx((100 * 3 + 600 * 0.3 + 300 * 3.75 + 50 * 15) / 1e6)
    assert not request.estimated


def test_a_session_of_a_version_without_a_journal_shows_its_window_now(store: Store) -> None:
    whole = timeline_of_stored(store, "s")
    store.commit("s", [Drop("events", key) for key, _ in store.load("s", "events")])
    timeline = timeline_of_stored(store, "s")
    assert [request.n for request in timeline.requests] == [1]
    assert shown_at(timeline, 1) == shown_at(whole, whole.requests[-1].n)


def test_a_damaged_entry_of_a_journal_hides_no_other(store: Store) -> None:
    store.commit("s", [Put("events", "r00000003", {"number": "x"}), Put("events", "c1", {"a": 1})])
    assert len(timeline_of_stored(store, "s").requests) == 19


def test_a_journal_goes_back_so_far_and_no_further() -> None:
    state = worked(open_store("memory:"), steps=1).inspect().state
    state.changes = MOST_KEPT - 1
    written = [
        change_writes(state, "recall", out=[], back=["s-1"], fresh=[], made=[], collection=None)
        for _ in range(2)
    ]
    assert [[(type(each), each.key) for each in writes] for writes in written] == [
        [(Put, "c00010000")],
        [(Put, "c00010001"), (Drop, "c00000001")],
    ]


def test_a_pinned_segment_and_a_stub_tell_what_they_are(store: Store) -> None:
    timeline = timeline_of_stored(store, "s")
    now = timeline.requests[-1].n
    status = {
        segment.id: (span.form, span.status)
        for segment in timeline.segments
        for span in segment.spans
        if span.last == now
    }
    pinned = next(name for name, (_, how) in status.items() if how == "pinned")
    stub = next(name for name, (form, _) in status.items() if form == "stub")
    assert {reason.rule for reason in stored_detail(store, "s", pinned).reasons} >= {"root"}
    detail = stored_detail(store, "s", stub)
    assert detail.tombstone is not None
    assert detail.tombstone.startswith("[ctxgc:")
    assert len(detail.original or "") > len(detail.tombstone)
    assert any(reason.rule == "moved" for reason in detail.reasons)


def test_the_journal_is_small_and_plain(store: Store) -> None:
    journal = read_journal(store, "s")
    assert [request.number for request in journal.requests] == list(range(1, 20))
    assert journal.requests[0].at > START
    causes = {change.cause for change in journal.changes}
    assert {"collection", "undo", "recall"} <= causes
    sizes = [len(json.dumps(doc)) for key, doc in store.load("s", "events") if key[0] == "r"]
    assert max(sizes) < 400
