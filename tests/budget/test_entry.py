"""SourceEntry: fields, sums, dictionary form."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from ctxgc.budget import GCPolicy, InstructionSource, SourceEntry
from ctxgc.errors import InputError
from tests.requirements import requirement


@requirement(
    "S2.entry.fields",
    "S2.entry.label-default",
    "S2.entry.children-default",
    "S2.entry.metadata-default",
    "S2.entry.message-ids-default",
)
def test_an_entry_takes_its_fields_in_the_seeds_order() -> None:
    entry = SourceEntry(InstructionSource.SYSTEM, 12, GCPolicy.LOCKED)
    other = SourceEntry(InstructionSource.SYSTEM, 12, GCPolicy.LOCKED)
    assert (entry.source, entry.tokens, entry.gc_policy) == ("system", 12, "locked")
    assert (entry.label, entry.children, entry.metadata, entry.message_ids) == (None, {}, {}, ())
    assert entry.children is not other.children
    assert entry.metadata is not other.metadata


@requirement(
    "S2.entry.created-at-default",
    "S2.entry.created-at-to-dict",
    "S2.tests.test_source_entry_timestamp",
)
def test_source_entry_timestamp() -> None:
    before = time.time()
    entry = SourceEntry(InstructionSource.PLUGIN, 1, GCPolicy.LOCKED)
    after = time.time()
    assert entry.created_at is not None
    assert before <= entry.created_at <= after
    assert entry.to_dict()["created_at"] == entry.created_at
    assert SourceEntry.from_dict(entry.to_dict()).created_at == entry.created_at


def test_the_total_includes_every_level_of_children() -> None:
    leaf = SourceEntry(InstructionSource.CONVERSATION, 3, GCPolicy.EPHEMERAL)
    twig = SourceEntry(InstructionSource.CONVERSATION, 4, GCPolicy.PARTIAL, children={"x": leaf})
    root = SourceEntry(InstructionSource.CONVERSATION, 5, GCPolicy.PARTIAL, children={"y": twig})
    assert (leaf.total_tokens(), twig.total_tokens(), root.total_tokens()) == (3, 7, 12)


def test_every_field_survives_the_dictionary_form() -> None:
    child = SourceEntry(
        InstructionSource.PLUGIN, 3, GCPolicy.EPHEMERAL, "c", {}, {"n": [1]}, 4.5, ("m1", "m2")
    )
    entry = SourceEntry(
        InstructionSource.PLUGIN, 2, GCPolicy.CONDITIONAL, "l", {"k": child}, {"a": 1}, 1.5, ("m3",)
    )
    plain = json.loads(json.dumps(entry.to_dict()))
    assert plain == entry.to_dict()
    assert SourceEntry.from_dict(plain) == entry


@pytest.mark.parametrize("tokens", [-1, 1.5, True, "7", None])
def test_tokens_that_are_no_count_are_refused(tokens: Any) -> None:
    with pytest.raises(InputError, match="tokens is"):
        SourceEntry(InstructionSource.SYSTEM, tokens, GCPolicy.LOCKED)


@pytest.mark.parametrize(("source", "policy"), [("sytem", "locked"), ("system", "lock")])
def test_an_unknown_source_or_policy_lists_the_known_ones(source: Any, policy: Any) -> None:
    with pytest.raises(InputError, match="use one of"):
        SourceEntry(source, 1, policy)


@pytest.mark.parametrize("data", [{}, {"source": "system", "tokens": -1, "gc_policy": "locked"}])
def test_a_wrong_dictionary_is_a_typed_error(data: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="budget entry"):
        SourceEntry.from_dict(data)
