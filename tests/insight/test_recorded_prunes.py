"""Pruning sessions that a real agent wrote, where they are at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxgc import validate
from ctxgc.insight import PruneTarget, propose_pruning, pruned_transcript, stored_session_id
from ctxgc.stores import MemoryStore
from ctxgc.wire.transcripts import Revision, writable
from ctxgc.wire.transcripts.transcript import read_whole

DATA = Path(__file__).parents[3] / "shared" / "data" / "claude_code_raw"


@pytest.mark.skipif(not DATA.is_dir(), reason="the recorded sessions are not on this machine")
def test_recorded_sessions_are_pruned_to_valid_ones() -> None:
    for path in sorted(DATA.glob("*.jsonl.gz")):
        data = read_whole(path)
        file = writable(data)
        assert file.write(Revision()) == data
        name, target = stored_session_id(file, path), PruneTarget.preset("balanced")
        store = MemoryStore()
        proposal = propose_pruning(file, store, name, target=target, context_limit=200_000)
        pruned = writable(pruned_transcript(file, proposal, "another-id"))
        assert pruned.session_id == "another-id"
        assert validate([entry.data for entry in pruned.entries], "anthropic", complete=False) == []
        before, after = (
            tokens - proposal.beside for tokens in (proposal.tokens_before, proposal.tokens_after)
        )
        assert after < 0.9 * before
        assert pruned.usages[-1].prompt == proposal.revision.reported < file.usages[-1].prompt
        assert all(store.get(name, "segments", row.segment_id) for row in proposal.rows)
