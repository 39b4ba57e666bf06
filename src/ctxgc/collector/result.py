"""What a collection did: its trigger, its result, and what the budget has to book."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

import msgspec
from msgspec.structs import replace

from ctxgc.budget import InstructionSource
from ctxgc.collector.probation import Certificate
from ctxgc.core import (
    Action,
    ContextSegment,
    Evidence,
    GCState,
    KeepScore,
    PruningPlan,
    ScoreContext,
    assemble,
    candidate_for,
)
from ctxgc.errors import InputError


class GCTriggerReason(StrEnum):
    """Why a collection runs."""

    THRESHOLD = "threshold"
    TURN_LIMIT = "turn_limit"
    MANUAL = "manual"
    PRE_MESSAGE = "pre_message"
    CONTEXT_LIMIT = "context_limit"


class GCRemovalItem(msgspec.Struct, frozen=True):
    """One thing that left the history, as the budget has to book it.

    Without a `child_key` the whole source was cleared. `reason` is a word of S2 where S2 has one, else what
    the `evidence` says.
    """

    source: InstructionSource
    child_key: str | None = None
    tokens_freed: int = 0
    reason: str = ""
    message_ids: tuple[str, ...] = ()
    evidence: Evidence | None = None

    @property
    def why(self) -> str:
        """The evidence in words; the reason, where a plugin gave no more."""
        return self.reason if self.evidence is None else str(self.evidence)


class GCResult(msgspec.Struct):
    """What a collection did.

    `shortfall` says how many tokens it stayed above its target, `turns_over` how many turns above theirs.
    `certificate` is what it can show for itself if it was planned some steps before.
    """

    success: bool
    items_collected: int
    tokens_before: int
    tokens_after: int
    plugin_name: str
    trigger_reason: GCTriggerReason
    notification: str | None = None
    details: dict[str, Any] = msgspec.field(default_factory=dict)
    error: str | None = None
    removal_list: list[GCRemovalItem] = msgspec.field(default_factory=list)
    shortfall: int = 0
    turns_over: int = 0
    certificate: Certificate | None = None

    @property
    def tokens_freed(self) -> int:
        """The tokens that the history is shorter by."""
        return self.tokens_before - self.tokens_after

    def to_dict(self) -> dict[str, Any]:
        """Return every field, and `tokens_freed`, as JSON-ready data; `turns_over` if there are any."""
        data: dict[str, Any] = msgspec.to_builtins(self, enc_hook=repr, str_keys=True)
        if not self.turns_over:
            del data["turns_over"]
        if self.certificate is None:
            del data["certificate"]
        for item in data["removal_list"]:
            item["message_ids"] = list(item["message_ids"])
            if item["evidence"] is None:
                del item["evidence"]
        return data | {"tokens_freed": self.tokens_freed}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> GCResult:
        """Return the result that `to_dict` described.

        Raises:
            InputError: a field is missing or wrong.
        """
        try:
            return msgspec.convert(dict(data), cls)
        except msgspec.ValidationError as error:
            raise InputError(f"GC result: {error}", hint="pass what to_dict() gave") from None


def plan_of(
    result: GCResult,
    leaving: Iterable[tuple[ContextSegment, Action]],
    state: GCState,
    score: KeepScore,
) -> PruningPlan:
    """Return a collection that was only tried as a plan: its segments with the evidence that decided."""
    why = {name: item for item in result.removal_list for name in item.message_ids}
    context = ScoreContext(now=state.now, step=state.heap.step)
    chosen = []
    for segment, action in leaving:
        item = why.get(segment.message_id or "")
        said = Evidence(kind="plugin", how="" if item is None else item.reason)
        evidence = said if item is None or item.evidence is None else item.evidence
        chosen.append(
            candidate_for(
                segment,
                state.now,
                score(segment, context),
                evidence,
                action=action,
                reachable=evidence.kind in ("least_worth", "oldest"),
                superseded=evidence.kind in ("superseded", "copy", "resolved"),
                bond=state.heap.bonds.group(segment),
            )
        )
    made = assemble(
        chosen,
        target_tokens=None,
        why=result.error or f"{result.plugin_name}: {len(chosen)} segments leave",
        tokens_before=result.tokens_before,
        heap_version=state.heap.version,
    )
    return replace(
        made,
        total_tokens_freed=result.tokens_freed,
        shortfall=result.shortfall,
        occasion="by hand",
    )
