"""Survival: what became of the evidence that came in: in the view, behind a handle, or lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from ctxgc.lab.evidence import EVIDENCE_KINDS, EvidenceKind, FoundEvidence, shown_in
from ctxgc.lab.facts import texts_of
from ctxgc.lab.needs import Needs, SentMessage
from ctxgc.lab.policies import Player
from ctxgc.lab.results import Bootstrap, Figure, RunResult, RunSurvival, SurvivalCount

# -- One run


@runtime_checkable
class RecallingPlayer(Player, Protocol):
    """A policy whose handles can be tried."""

    def recalled(self, index: int) -> list[str]:
        """Return the texts that a handle in the view brings back of the message number `index`."""
        ...


class SurvivalJudge:
    """Follows the evidence of one run through the views of one policy.

    Between two collections a view only grows, so it looks at the requests that changed what had been
    sent, and at the last one. Behind a handle is only what the handle really brings back.
    """

    def __init__(self, needs: Needs, player: Player) -> None:
        self._needs = needs
        self._player = player if isinstance(player, RecallingPlayer) else None
        self._sources: dict[FoundEvidence, list[int]] = {}
        self._read = 0
        self._last: tuple[Sequence[SentMessage], int] = (), 0
        self._at_collections: Counter[tuple[EvidenceKind, Place]] = Counter()

    def request(self, view: Sequence[SentMessage], index: int, *, changed: bool) -> None:
        """Take the view that message `index` answers; `changed` if it does not begin with the last one."""
        self._last = view, index
        if changed:
            self._at_collections += self._places(view, index)

    def result(self) -> RunSurvival:
        """Return the counts of the run, all of whose requests were taken."""
        view, index = self._last
        compacted = [SentMessage(message) for message in self._needs.run.compacted]
        at_end = self._places(view, index)
        self._player = None  # what a host compacted has no handles
        return RunSurvival(
            at_end=_counts(at_end),
            at_collections=_counts(self._at_collections),
            by_host=_counts(self._places(compacted, index)) if compacted else {},
            tokens=sum(entry.tokens for entry in view),
            host_tokens=sum(entry.tokens for entry in compacted),
        )

    def _places(
        self, view: Iterable[SentMessage], index: int
    ) -> Counter[tuple[EvidenceKind, Place]]:
        """Return how much of the evidence before a message is where, by kind."""
        self._take(index)
        shown = frozenset[str]().union(*(entry.shown for entry in view))
        recalled: dict[int, frozenset[str]] = {}
        found: Counter[tuple[EvidenceKind, Place]] = Counter()
        for piece, sources in self._sources.items():
            kind, text = piece
            if text in shown:
                found[kind, "view"] += 1
            elif any(text in self._recalled(source, recalled) for source in reversed(sources)):
                found[kind, "handle"] += 1
            else:
                found[kind, "lost"] += 1
        return found

    def _take(self, index: int) -> None:
        """Take in the evidence of the messages before `index`."""
        for number in range(self._read, index):
            for piece in self._needs.entries[number].evidence:
                self._sources.setdefault(piece, []).append(number)
        self._read = max(self._read, index)

    def _recalled(self, index: int, known: dict[int, frozenset[str]]) -> frozenset[str]:
        """Return what the handle of a message brings back, asked for once in each view."""
        if self._player is None:
            return frozenset()
        if index not in known:
            texts = self._player.recalled(index)
            known[index] = shown_in(each for text in texts for each in texts_of(_as_call(text)))
        return known[index]


def _as_call(text: str) -> dict[str, Any]:
    """Return a message with a text both as it is and, if it is JSON, decoded: it may be a call's."""
    return {"content": text, "tool_calls": [{"function": {"arguments": text}}]}


Place = Literal["view", "handle", "lost"]


def _counts(found: Counter[tuple[EvidenceKind, Place]]) -> dict[str, SurvivalCount]:
    counts = {
        kind: SurvivalCount(
            view=found[kind, "view"], handle=found[kind, "handle"], lost=found[kind, "lost"]
        )
        for kind in EVIDENCE_KINDS
    }
    return {kind: count for kind, count in counts.items() if count.whole}


# -- Many runs


Moment = Literal["end", "collections", "host"]
HOST = "the host"


class SurvivalShares(msgspec.Struct, frozen=True, kw_only=True):
    """What share of the evidence of one kind is where."""

    view: Figure
    handle: Figure
    lost: Figure


class SurvivalRow(msgspec.Struct, frozen=True, kw_only=True):
    """The evidence of some runs after one policy, by kind, and of `all` kinds.

    `moment` is the `end` of each run, all its `collections` together, or the end of those runs that the
    `host` compacted; the row of `the host` shows what its compaction left of them. `tokens` is the size of
    the last view, as a share of the whole run.
    """

    policy: str
    moment: Moment
    runs: int
    tokens: Figure
    kinds: dict[str, SurvivalShares]


def survival_rows(policies: Sequence[str], results: Sequence[RunResult]) -> list[SurvivalRow]:
    """Return the rows of each policy at each moment; none if survival was not judged."""
    played = {
        name: [r for r in results if r.policy == name and r.survival is not None]
        for name in policies
    }
    rows = [
        _row(name, moment, own)
        for moment in ("end", "collections")
        for name, own in played.items()
        if own and (moment == "end" or any(_survival(r).at_collections for r in own))
    ]
    compacted = {name: [r for r in own if _survival(r).by_host] for name, own in played.items()}
    hosted = next((own for own in compacted.values() if own), [])
    rows += [_row(HOST, "host", hosted)] if hosted else []
    return rows + [_row(name, "host", own) for name, own in compacted.items() if own]


def _row(name: str, moment: Moment, results: Sequence[RunResult]) -> SurvivalRow:
    draws = Bootstrap([result.group for result in results])
    found = [_survival(result) for result in results]
    if name == HOST:
        counts = [each.by_host for each in found]
    else:
        counts = [each.at_collections if moment == "collections" else each.at_end for each in found]
    sizes = [each.host_tokens if name == HOST else each.tokens for each in found]
    kinds: dict[str, SurvivalShares] = {
        kind: _shares(draws, [c.get(kind, _NONE) for c in counts]) for kind in EVIDENCE_KINDS
    }
    pooled = [_pooled(each.values()) for each in counts]
    return SurvivalRow(
        policy=name,
        moment=moment,
        runs=len(results),
        tokens=draws.share(sizes, [result.tokens for result in results]),
        kinds={**kinds, "all": _shares(draws, pooled)},
    )


_NONE = SurvivalCount()


def _survival(result: RunResult) -> RunSurvival:
    return result.survival or RunSurvival()


def _pooled(counts: Iterable[SurvivalCount]) -> SurvivalCount:
    known = list(counts)
    return SurvivalCount(
        view=sum(c.view for c in known),
        handle=sum(c.handle for c in known),
        lost=sum(c.lost for c in known),
    )


def _shares(draws: Bootstrap, counts: Sequence[SurvivalCount]) -> SurvivalShares:
    wholes = [count.whole for count in counts]

    def share(place: Place, empty: float) -> Figure:
        return draws.share([getattr(count, place) for count in counts], wholes, empty)

    return SurvivalShares(
        view=share("view", 1.0), handle=share("handle", 0.0), lost=share("lost", 0.0)
    )
