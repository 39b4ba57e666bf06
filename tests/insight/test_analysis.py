"""An insight adds up, and says what is exact in it."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from shlex import quote

import pytest

from ctxgc.insight import (
    SCHEMA,
    Insight,
    PruneTarget,
    analyze_transcript,
    bill,
    measurement,
    propose_pruning,
)
from ctxgc.stores import MemoryStore
from ctxgc.tokens import counter_for
from ctxgc.wire.transcripts import open_transcript, open_writable
from tests.wire.transcripts import made
from tools.requirement_scan import ROOT

REAL = ROOT.parent / "shared" / "data" / "claude_code_raw"
STEPS = made.conversation(turns=8, lines=60)


def _insight(tmp_path: Path, lines: list[made.Json], **options: int) -> Insight:
    return analyze_transcript(open_transcript(made.write_lines(tmp_path / "a", lines)), **options)


@pytest.mark.parametrize("name", made.EVERY_FORMAT)
def test_every_format_gives_the_same_turns_tools_and_requests(name: str, tmp_path: Path) -> None:
    found = analyze_transcript(open_transcript(made.write_format(name, tmp_path, STEPS)))
    assert (len(found.turns), found.requests) == (8, 32)
    assert {row.name: (row.count, row.failed) for row in found.tools} == {
        "Read": (8, 0),
        "Bash": (16, 8),
        "Edit": (8, 0),
    }
    assert found.turns[0].title == "Please fix BUG-0 in src/cart.py."
    assert [turn.calls for turn in found.turns] == [4] * 8


def test_the_sources_add_up_to_the_whole_and_turns_too(tmp_path: Path) -> None:
    found = _insight(tmp_path, made.claude_code(STEPS))
    assert abs(sum(row.tokens for row in found.sources) - found.tokens) <= len(found.sources)
    assert abs(sum(turn.tokens for turn in found.turns) - found.tokens) <= len(found.turns)
    in_window = sum(row.window_tokens for row in found.sources) + found.window.beside
    assert abs(in_window - found.window.tokens) <= len(found.sources)


def test_tokens_are_the_providers_where_it_reports_them(tmp_path: Path) -> None:
    found = _insight(tmp_path, made.claude_code(STEPS))
    assert found.scale is not None
    last = found.fill[-1]
    # The last answer comes on top of what the last request sent.
    assert 0 <= found.window.tokens - last.tokens < 200
    assert 2_900 <= found.window.beside <= 3_100


def test_without_reported_usage_sizes_are_counted(tmp_path: Path) -> None:
    messages = made.chat(STEPS)
    found = _insight(tmp_path, messages)
    count = counter_for(None).count
    texts = sum(count(message["content"] or "") for message in messages)
    assert found.scale is None
    assert texts < found.tokens < 1.5 * texts
    assert not found.cache.is_reported
    assert found.bill.paid is None


def test_a_compaction_empties_the_window(tmp_path: Path) -> None:
    found = _insight(tmp_path, made.claude_code(STEPS, compact_after=6))
    assert (found.compactions, found.window.number, found.bill.windows) == (1, 2, 2)
    sizes = [point.tokens for point in found.fill]
    drop = next(n for n in range(1, len(sizes)) if sizes[n] < sizes[n - 1])
    assert drop == 24
    assert found.window.tokens < max(sizes)


def test_zones_count_every_request(tmp_path: Path) -> None:
    found = _insight(tmp_path, made.claude_code(STEPS), context_limit=11_000)
    assert sum(found.zones.values()) == found.requests
    assert found.zones["safe"] > 0
    assert found.window.zone == "critical"


def test_a_file_that_was_read_again_and_tests_run_again_are_garbage(tmp_path: Path) -> None:
    found = _insight(tmp_path, made.claude_code(STEPS))
    reasons = {each.reason: each.count for each in found.garbage.reasons}
    assert reasons["superseded"] > 8
    assert 0 < found.garbage.tokens <= found.garbage.of_tokens
    assert any(each.how == "re-run" for each in found.garbage.largest)


def test_a_lost_cache_is_found_with_its_reason(tmp_path: Path) -> None:
    lines = made.claude_code(STEPS, cache_break_at=22)
    found = _insight(tmp_path, lines)
    assert [each.why for each in found.cache.breaks] == ["the prefix changed"]
    assert found.cache.lost > 3_000


def test_an_idle_hour_explains_a_lost_cache(tmp_path: Path) -> None:
    lines = made.claude_code(STEPS, cache_break_at=22)
    late = (made.START + timedelta(seconds=20 * 22)).isoformat().replace("+00:00", "Z")
    at = next(n for n, line in enumerate(lines) if line.get("timestamp", "") >= late)
    for line in lines[at:]:
        line["timestamp"] = line["timestamp"].replace("T09:", "T10:")
    assert [each.why for each in _insight(tmp_path, lines).cache.breaks] == ["idle too long"]


def test_a_small_window_is_cheaper_with_collections(tmp_path: Path) -> None:
    steps = made.conversation(turns=40, lines=120)
    found = _insight(tmp_path, made.chat(steps), context_limit=20_000)
    made_bill = found.bill
    assert made_bill.collections >= 1
    assert made_bill.with_.spend.sent < made_bill.without.spend.sent
    assert made_bill.stopped == ""


def test_of_a_large_file_only_the_last_window_is_looked_at_closely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = made.claude_code(STEPS, compact_after=4)
    whole = _insight(tmp_path, lines)
    monkeypatch.setattr(measurement, "WHOLE_BYTES", 1_000)
    large = _insight(tmp_path, lines)
    assert (whole.bill.windows, large.bill.windows) == (2, 1)
    assert (large.window, large.garbage) == (whole.window, whole.garbage)
    assert any("last window" in note for note in large.notes)


def test_more_than_the_window_holds_is_said_and_cut(tmp_path: Path) -> None:
    found = _insight(tmp_path, made.chat(STEPS), context_limit=2_000)
    assert found.window.messages == found.messages
    assert (found.window.zone, found.window.percent > 100) == ("critical", True)
    assert any("longer than the window" in note for note in found.notes)


def test_a_long_window_is_replayed_from_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bill, "MOST_REPLAYED", 10)
    found = _insight(tmp_path, made.chat(STEPS))
    assert 0 < found.bill.without.spend.requests < 10
    assert any("The bill covers the last 10 messages" in note for note in found.notes)


def test_the_json_is_stable_and_plain(tmp_path: Path) -> None:
    path = made.write_lines(tmp_path / "a", made.codex(STEPS))
    once, again = (analyze_transcript(open_transcript(path)).to_dict() for _ in range(2))
    assert json.dumps(once) == json.dumps(again)
    assert once["schema"] == SCHEMA
    assert set(once["bill"]) >= {"paid", "with", "without", "collections", "subagents"}


def test_advice_quotes_what_the_command_that_it_names_will_do(tmp_path: Path) -> None:
    path = made.write_lines(tmp_path / "a", made.claude_code(STEPS))
    file = open_writable(path)
    proposal = propose_pruning(
        file, MemoryStore(), "s", target=PruneTarget.preset("balanced"), context_limit=11_000
    )
    found = analyze_transcript(
        open_transcript(path), context_limit=11_000, preview=lambda: proposal
    )
    advice = found.advice[0]
    assert advice.command == f"ctxgc prune {quote(str(path))} --context-limit 11000"
    sizes = f"from {proposal.tokens_before:,} to {proposal.tokens_after:,} tokens"
    assert sizes in advice.text
    assert proposal.tokens_before == found.window.tokens


def test_without_a_way_to_prune_nothing_is_advised_about_it(tmp_path: Path) -> None:
    found = _insight(tmp_path, made.claude_code(STEPS), context_limit=11_000)
    assert not any("prune" in advice.command for advice in found.advice)


@pytest.mark.skipif(not REAL.is_dir(), reason="the recorded sessions are not on this machine")
def test_a_real_session_adds_up() -> None:
    found = analyze_transcript(
        open_transcript(REAL / "e80aa543-6eff-4cb5-91e0-6d4e8e7951e9.jsonl.gz")
    )
    assert (len(found.turns), found.requests, found.damaged) == (1, 17, 0)
    assert found.scale is not None
    assert abs(found.window.tokens - found.fill[-1].tokens) < 1_000
