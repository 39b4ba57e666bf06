"""Plans: what a collection will do, as data.

A `PruningPlan` is a list of `PruningCandidate`s, one for each segment that leaves, each with the `Evidence`
that decided about it, and the occasion on which the plan acts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Literal, get_args

import msgspec

from ctxgc.core.options import PlanScope
from ctxgc.core.segment import ContextSegment, SegmentType
from ctxgc.errors import InputError

Action = Literal["stash", "evacuate", "compress", "delete"]
ACTIONS: tuple[Action, ...] = get_args(Action)
IN_PLACE: tuple[Action, ...] = ("evacuate", "compress")
"""The actions that leave something smaller in the segment's place, so that its bond stays whole."""


EvidenceKind = Literal[
    "superseded", "copy", "resolved", "unreachable", "idle", "least_worth", "oldest", "priority",
    "policy", "turn_limit", "asked", "notice", "thinking", "plugin", "cold",
    "arrival",
]  # fmt: skip
Occasion = Literal["price", "room", "hard limit", "turn limit", "by hand"]


class Evidence(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """Why something leaves: what decided, never what was found out afterwards.

    `superseded`, `copy` and `resolved` name what did it (`by`, at a `request`) and `how`. `unreachable` and
    `idle` are about the root `rule` that held it last, if one is known, and for how many `requests` it has
    not; what no root would reach anyway is `unreachable`, and says what took its place all the same.
    `least_worth` and `oldest` exist only where room must be made: so many `tokens` had to go.
    `priority` is the fourth of S4's, with the name of its rule (`how`); `policy` is that of the budget.
    `asked` is a request by hand. `cold` is not a reason to leave but one to compress: so many `tokens`,
    untouched for so many steps (`requests`). `arrival` is about what was never sent: `how` it was shortened.
    """

    kind: EvidenceKind
    how: str = ""
    by: str = ""
    rule: str = ""
    request: int = 0
    requests: int = 0
    tokens: int = 0

    def __str__(self) -> str:
        return _SAID[self.kind](self)

    @property
    def brief(self) -> str:
        """The evidence in few words, for the note that stays in a view."""
        if self.kind in ("superseded", "copy", "resolved"):
            at = f" at request {self.request}" if self.request else ""
            return f"superseded ({_HOW.get(self.how, self.how)}{at})" if self.how else "copy"
        if self.kind == "idle":
            return _idle_for(self)
        if self.kind == "unreachable":
            return f"no longer {self.rule}{_since(self)}" if self.rule else self.kind
        return str(self).partition(":")[0]


_HOW = {
    "re-read": "read again",
    "edited": "file edited",
    "re-run": "run again",
    "identical": "same text",
    "resolved": "error resolved",
    "newer list": "newer list",
}


def _by(evidence: Evidence) -> str:
    at = f" at request {evidence.request}" if evidence.request else ""
    return f" by {evidence.by}{at}" if evidence.by else at


def _superseded(evidence: Evidence) -> str:
    return f"superseded ({_HOW.get(evidence.how, evidence.how)}){_by(evidence)}"


def _requests(evidence: Evidence) -> str:
    return f"{evidence.requests} request{'' if evidence.requests == 1 else 's'}"


def _idle_for(evidence: Evidence) -> str:
    return f"idle for {_requests(evidence)}"


def _idle(evidence: Evidence) -> str:
    said = _idle_for(evidence)
    return f"{said}, no longer {evidence.rule}" if evidence.rule else said


def _room(word: str) -> Callable[[Evidence], str]:
    def said(evidence: Evidence) -> str:
        told = f"{evidence.tokens:,} tokens had to go" if evidence.tokens else evidence.how
        return f"{word}: {told or 'the window is full'}"

    return said


def _since(evidence: Evidence) -> str:
    return f" for {_requests(evidence)}" if evidence.requests else ""


def _unreachable(evidence: Evidence) -> str:
    held = f", no longer {evidence.rule}{_since(evidence)}" if evidence.rule else ""
    return f"unreachable{held}{f'; {_superseded(evidence)}' if evidence.how else ''}"


def _cold(evidence: Evidence) -> str:
    idle = f"untouched for {evidence.requests} steps"
    return f"cold but important: {evidence.tokens} tokens, reachable, {idle}"


_SAID: Mapping[EvidenceKind, Callable[[Evidence], str]] = {
    "superseded": _superseded,
    "copy": lambda e: f"copy of {e.by}" if e.by else "copy: its lines are shown elsewhere",
    "resolved": lambda e: f"resolved{_by(e)}",
    "unreachable": _unreachable,
    "idle": _idle,
    "least_worth": _room("least needed"),
    "oldest": _room("oldest"),
    "priority": lambda e: f"priority 4 of S4: {e.how}",
    "policy": lambda e: e.how,
    "turn_limit": lambda e: f"turn limit: {e.how}",
    "asked": lambda e: f"asked for{f'; {e.how}' if e.how else ''}",
    "notice": lambda _: "a newer note takes its place",
    "thinking": lambda _: "thinking that the provider refuses after an edit",
    "plugin": lambda e: e.how,
    "cold": _cold,
    "arrival": lambda e: f"at arrival: {e.how}",
}


NOT_SAID = Evidence(kind="plugin")


class PruningCandidate(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A segment that may leave, with the reason why, which is its evidence in words.

    `score` is its keep_score; `freed` what its action wins, net of the text that stays in its place;
    `age` its seconds since creation; `bond` the ids that it lives and dies with, itself included. One that
    comes with a reason alone gets the evidence that somebody else said so.
    """

    segment_id: str
    score: float
    tokens: int
    reason: str
    type: SegmentType
    age: float
    action: Action = "stash"
    reachable: bool = False
    superseded: bool = False
    freed: int = -1
    bond: tuple[str, ...] = ()
    evidence: Evidence = NOT_SAID

    def __post_init__(self) -> None:
        if self.action not in ACTIONS:
            raise InputError(
                f"action '{self.action}' is not known",
                hint=f"use one of: {', '.join(ACTIONS)}",
                field="action",
            )
        if self.tokens < 0:
            raise InputError(
                f"tokens cannot be {self.tokens}", hint="give zero or more", field="tokens"
            )
        if self.freed < 0:
            msgspec.structs.force_setattr(self, "freed", self.tokens)
        if self.evidence is NOT_SAID:
            said = Evidence(kind="plugin", how=self.reason)
            msgspec.structs.force_setattr(self, "evidence", said)


def candidate_for(
    segment: ContextSegment,
    now: datetime,
    score: float,
    evidence: Evidence,
    *,
    action: Action = "stash",
    reachable: bool = False,
    superseded: bool = False,
    freed: int = -1,
    bond: tuple[str, ...] = (),
) -> PruningCandidate:
    """Return the candidate for a segment, with what decided about it."""
    return PruningCandidate(
        segment_id=segment.segment_id,
        score=score,
        tokens=segment.tokens or 0,
        reason=str(evidence),
        type=segment.type,
        age=segment.age(now),
        action=action,
        reachable=reachable,
        superseded=superseded,
        freed=freed,
        bond=bond,
        evidence=evidence,
    )


class PruningPlan(msgspec.Struct, frozen=True):
    """What a collection will do; nothing has changed yet.

    `candidates` are the segments that leave: superseded garbage, other garbage, then the reachable,
    each by keep_score, lowest first. `proposals` are reachable, long and cold: worth compressing, but
    not part of the plan. `stubs` holds the texts that stay in the place of what is evacuated, or of
    what no summary was found for. `shortfall` is what is missing to the target, zero when it is met.
    `occasion` is why the plan acts now.
    """

    candidates: list[PruningCandidate]
    total_tokens_freed: int
    stash_segments: list[str]
    delete_segments: list[str]
    reason: str
    evacuate_segments: list[str] = []
    compress_segments: list[str] = []
    proposals: list[PruningCandidate] = []
    target_tokens: int | None = None
    shortfall: int = 0
    scope: PlanScope = "major"
    tokens_before: int = 0
    heap_version: int | None = None
    stubs: dict[str, str] = {}
    occasion: Occasion | None = None

    @property
    def tokens_after(self) -> int:
        """What the working tier will hold once the plan is applied."""
        return self.tokens_before - self.total_tokens_freed

    def __len__(self) -> int:
        return len(self.candidates)


def checked_target(target_tokens: int, field: str = "target_tokens") -> int:
    """Return a number of tokens that a plan can aim at.

    Raises:
        InputError: it is below zero or no whole number.
    """
    target: object = target_tokens
    if not isinstance(target, int) or isinstance(target, bool) or target < 0:
        raise InputError(
            f"{field} cannot be {target_tokens!r}",
            hint="give a whole number, zero or more",
            field=field,
        )
    return target


def assemble(
    chosen: list[PruningCandidate],
    *,
    target_tokens: int | None,
    why: str = "",
    proposals: list[PruningCandidate] | None = None,
    scope: PlanScope = "major",
    tokens_before: int = 0,
    heap_version: int | None = None,
    stubs: Mapping[str, str] | None = None,
) -> PruningPlan:
    """Return the plan that does what the chosen candidates propose."""
    freed = sum([candidate.freed for candidate in chosen])
    short = max(0, (target_tokens or 0) - freed)
    groups: dict[Action, list[str]] = {action: [] for action in ACTIONS}
    for candidate in chosen:
        groups[candidate.action].append(candidate.segment_id)
    return PruningPlan(
        candidates=chosen,
        total_tokens_freed=freed,
        stash_segments=groups["stash"],
        delete_segments=groups["delete"],
        evacuate_segments=groups["evacuate"],
        compress_segments=groups["compress"],
        reason=why or plan_summary(chosen, freed, target_tokens, short),
        proposals=proposals or [],
        target_tokens=target_tokens,
        shortfall=short,
        scope=scope,
        tokens_before=tokens_before,
        heap_version=heap_version,
        stubs=dict(stubs or {}),
    )


_CLASSES: Mapping[EvidenceKind, str] = {
    "superseded": "superseded",
    "copy": "superseded",
    "resolved": "superseded",
    "unreachable": "unreachable",
    "idle": "idle",
    "asked": "asked for",
}


def plan_summary(
    chosen: list[PruningCandidate], freed: int, target_tokens: int | None, short: int
) -> str:
    """Return what a plan does in one line: how much leaves and why, and whether that meets a target."""
    why = Counter(map(_class_of, chosen))
    parts = [f"{len(chosen)} segments leave and free {freed} tokens"]
    parts += [", ".join(f"{count} {name}" for name, count in why.items())] if why else []
    if target_tokens is not None:
        parts.append(f"target {target_tokens}" + (f", {short} tokens short" if short else " met"))
    return "; ".join(parts)


def _class_of(candidate: PruningCandidate) -> str:
    otherwise = "reachable with low scores" if candidate.reachable else "unreachable"
    return _CLASSES.get(candidate.evidence.kind, otherwise)


def age_text(seconds: float) -> str:
    """Return a time span in its largest whole unit: `40 s`, `3 h`, `2 d`."""
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{max(0, int(seconds))} s"
