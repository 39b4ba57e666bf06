"""Proposals: a collection of a transcript's window, with nothing lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxgc import validate
from ctxgc.errors import PlanError
from ctxgc.insight import (
    Proposal,
    PruneTarget,
    propose_pruning,
    pruned_transcript,
    stored_session_id,
)
from ctxgc.insight.prune_proposal import valid_entries
from ctxgc.session import RECALL_CALL
from ctxgc.stores import MemoryStore
from ctxgc.wire.transcripts import Revision, Writable, writable
from tests.session_files import OTHER, SESSION, all_files, chat, claude_code, dumped

FILES = all_files()
names = pytest.mark.parametrize("name", sorted(FILES))


def prune(file: Writable, store: MemoryStore, preset: str = "balanced") -> Proposal:
    name = stored_session_id(file, Path("chat.json"))
    return propose_pruning(
        file, store, name, target=PruneTarget.preset(preset), context_limit=200_000,
        recall_call=RECALL_CALL,
    )  # fmt: skip


@names
@pytest.mark.parametrize("preset", ["gentle", "balanced", "tight"])
def test_the_pruned_file_is_smaller_valid_and_keeps_the_requests(name: str, preset: str) -> None:
    file = writable(FILES[name])
    proposal = prune(file, MemoryStore(), preset)
    assert proposal.tokens_after < proposal.tokens_before
    assert proposal.tokens_after - proposal.shortfall <= proposal.target
    data = pruned_transcript(file, proposal, OTHER)
    again = writable(data)
    assert len(data) < len(FILES[name])
    assert again.kind == file.kind
    assert validate([entry.data for entry in again.entries], again.format) == []
    said = [json.dumps(entry.data) for entry in again.entries]
    assert any("Make the parser green." in text for text in said)
    assert "Good. Now the docs." in said[-1]


@names
def test_what_leaves_is_in_the_stash_under_its_handle_word_for_word(name: str) -> None:
    store = MemoryStore()
    file = writable(FILES[name])
    proposal = prune(file, store, "tight")
    data = pruned_transcript(file, proposal).decode()
    docs = {
        doc["handle"]: doc
        for _, doc in store.load(proposal.session_id, "segments")
        if not doc.get("derived_from")
    }
    originals = [
        part.text for e in file.entries if (m := e.message()) is not None for part in m.parts
    ]
    for row in proposal.rows:
        assert docs[row.handle]["text"] in originals
        assert docs[row.handle]["tier"] == "stashed"
    named = [row.handle for row in proposal.rows if row.action == "evacuate"]
    assert named
    assert all(f'context_recall(handle=\\"{handle}\\")' in data for handle in named)


def test_every_row_says_why() -> None:
    proposal = prune(writable(claude_code()), MemoryStore())
    said = {
        row.why.partition(",")[0].partition(" by ")[0].partition(":")[0] for row in proposal.rows
    }
    assert said <= {
        "superseded (read again)", "superseded (run again)", "superseded (same text)", "copy of",
        "unreachable", "least needed", "oldest", "thinking bound to what changed before it",
    }  # fmt: skip
    assert [row.tokens for row in proposal.rows] == sorted(
        (r.tokens for r in proposal.rows), reverse=True
    )


def test_no_row_tells_the_age_of_a_message_whose_time_is_not_known() -> None:
    store = MemoryStore()
    timed = claude_code()
    lines = [json.loads(line) for line in timed.decode().splitlines()]
    untimed = "\n".join(
        json.dumps({key: value for key, value in line.items() if key != "timestamp"})
        for line in lines
    )
    prune(writable(untimed.encode()), store)
    rows = prune(writable(timed), store).rows
    assert rows
    assert [row.why for row in rows if row.why.endswith(" old")] == []


def test_pruning_again_keeps_the_handles_of_before() -> None:
    store = MemoryStore()
    file = writable(claude_code())
    first = prune(file, store, "gentle")
    second = prune(file, store, "tight")
    known = {doc["handle"] for _, doc in store.load(first.session_id, "segments")}
    assert second.session_id == first.session_id
    assert {row.handle for row in first.rows} | {row.handle for row in second.rows} <= known
    assert second.tokens_after < first.tokens_after
    assert second.tokens_before == first.tokens_before


def test_a_pruned_file_that_grew_can_be_pruned_again() -> None:
    store = MemoryStore()
    file = writable(claude_code())
    pruned = writable(pruned_transcript(file, prune(file, store)))
    again = prune(pruned, store, "tight")
    assert again.tokens_after <= again.tokens_before
    assert (
        validate([e.data for e in writable(pruned_transcript(pruned, again)).entries], "anthropic")
        == []
    )
    handles = {doc["handle"] for _, doc in store.load(again.session_id, "segments")}
    text = pruned_transcript(pruned, again).decode()
    assert all(part[:18] in handles for part in text.split('context_recall(handle=\\"')[1:])


def test_what_breaks_a_rule_by_itself_is_left_as_it_is() -> None:
    messages = chat()
    orphan = {"role": "tool", "tool_call_id": "nobody", "content": "x " * 400}
    messages.insert(6, orphan)
    messages.insert(0, {"content": "no role"})
    file = writable(dumped(messages))
    proposal = prune(file, MemoryStore(), "tight")
    assert proposal.left_alone == 1
    assert orphan in [entry.data for entry in writable(pruned_transcript(file, proposal)).entries]
    assert len(valid_entries(file.entries)) == len(file.entries) - 1


def test_a_result_that_is_not_what_was_planned_is_never_given_out() -> None:
    class Wrong:
        def __init__(self, file: Writable) -> None:
            self.kind, self.format, self.session_id = file.kind, file.format, None
            self.entries = file.entries

        def write(self, revision: Revision, new_id: str | None = None) -> bytes:
            return dumped(chat()[:5])

    file = writable(FILES["chat.jsonl"])
    with pytest.raises(PlanError, match="is not what was planned"):
        pruned_transcript(Wrong(file), prune(file, MemoryStore()))


def test_a_strategy_that_proposes_nothing_changes_nothing() -> None:
    file = writable(FILES["chat.json"])
    name = stored_session_id(file, Path("chat.json"))
    target = PruneTarget(tokens=1_000_000)
    proposal = propose_pruning(file, MemoryStore(), name, target=target, context_limit=2_000_000)
    assert (proposal.rows, bool(proposal.revision)) == ([], False)
    assert pruned_transcript(file, proposal) == FILES["chat.json"]


def test_stores_know_a_session_by_its_agent_and_id_and_a_file_by_its_path(tmp_path: Path) -> None:
    assert stored_session_id(writable(claude_code()), tmp_path) == f"claude-code-{SESSION}"
    first = stored_session_id(writable(FILES["chat.json"]), tmp_path / "a" / "chat.json")
    other = stored_session_id(writable(FILES["chat.json"]), tmp_path / "b" / "chat.json")
    assert first.startswith("file-chat-")
    assert first != other
