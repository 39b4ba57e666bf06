"""The window as its provider counts it, before and after a pruning."""

from __future__ import annotations

import pytest

from ctxgc.insight import Proposal, PruneTarget, propose_pruning, pruned_transcript
from ctxgc.insight.prune_proposal import reported_window
from ctxgc.stores import MemoryStore
from ctxgc.tokens import counter_for, message_tokens
from ctxgc.wire.transcripts import Writable, writable
from tests.reported_files import BESIDE, reported_claude_code, reported_codex
from tests.session_files import all_files

SCALES = {"claude_code": 0.8, "codex": 1.0}
FILES = {"claude_code": reported_claude_code(SCALES["claude_code"]), "codex": reported_codex()}
kinds = pytest.mark.parametrize("kind", sorted(FILES))


def proposed(file: Writable, target: str) -> Proposal:
    wanted = PruneTarget.parse(target)
    return propose_pruning(file, MemoryStore(), "a", target=wanted, context_limit=200_000)


def naive_prompt(kind: str, file: Writable, line: int) -> int:
    """What the provider of these files takes for all that stands in front of a line."""
    counter = counter_for("claude-x" if kind == "claude_code" else None)
    found = [entry.message() for entry in file.entries if entry.line < line]
    return BESIDE + round(SCALES[kind] * sum(message_tokens(m, counter) for m in found if m))


@kinds
def test_reports_tell_the_scale_and_what_stands_beside_the_messages(kind: str) -> None:
    file = writable(FILES[kind])
    found = reported_window(file)
    assert found.prompt == file.usages[-1].prompt
    assert found.beside == pytest.approx(BESIDE, abs=20)
    assert getattr(found.counter, "scale", 1.0) == pytest.approx(SCALES[kind], rel=0.001)


@pytest.mark.parametrize("name", sorted(all_files()))
def test_without_reports_the_counter_of_the_model_counts(name: str) -> None:
    file = writable(all_files()[name])
    found = reported_window(file)
    assert (found.beside, found.prompt) == (0, None)
    assert found.without(10) is None
    assert proposed(file, "50%").revision.reported is None


@kinds
def test_a_pruned_file_tells_what_its_newest_request_would_have_taken(kind: str) -> None:
    file = writable(FILES[kind])
    proposal = proposed(file, f"{BESIDE + 6_000}")
    again = writable(pruned_transcript(file, proposal))
    told = again.usages[-1]
    assert told.prompt == proposal.revision.reported
    assert told.prompt == pytest.approx(naive_prompt(kind, again, told.line), rel=0.01)
    assert told.prompt < file.usages[-1].prompt - 5_000
    before = {usage.prompt for usage in file.usages[:-1]}
    assert before.issuperset(usage.prompt for usage in again.usages[:-1])


@kinds
def test_a_session_that_is_pruned_again_is_counted_as_before(kind: str) -> None:
    file = writable(FILES[kind])
    first = reported_window(file)
    again = writable(pruned_transcript(file, proposed(file, f"{BESIDE + 6_000}")))
    second = reported_window(again)
    assert second.beside == pytest.approx(first.beside, abs=5)
    assert second.prompt == again.usages[-1].prompt
    scales = [getattr(each.counter, "scale", 1.0) for each in (first, second)]
    assert scales[1] == pytest.approx(scales[0], rel=0.01)


@kinds
def test_targets_and_totals_are_those_of_whole_requests(kind: str) -> None:
    file = writable(FILES[kind])
    proposal = proposed(file, f"{BESIDE + 11_000}")
    assert proposal.tokens_before == pytest.approx(naive_prompt(kind, file, 10**9), rel=0.01)
    assert proposal.tokens_after <= proposal.target == BESIDE + 11_000
    assert (proposal.beside, proposal.shortfall) == (pytest.approx(BESIDE, rel=0.05), 0)


@kinds
def test_a_target_below_what_stands_beside_is_missed_by_what_stays(kind: str) -> None:
    proposal = proposed(writable(FILES[kind]), "1k")
    assert proposal.shortfall == proposal.tokens_after - 1_000 >= proposal.beside - 1_000


def test_a_preset_is_a_share_of_what_can_be_pruned() -> None:
    file = writable(FILES["codex"])
    proposal = propose_pruning(
        file, MemoryStore(), "a", target=PruneTarget.preset("balanced"), context_limit=200_000
    )
    messages = proposal.tokens_before - proposal.beside
    assert proposal.target == proposal.beside + messages // 2
