"""Analysis: what is reachable and what everything is worth, before anything is decided."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec.structs import replace

from ctxgc.collector.presets import Preset
from ctxgc.collector.worth import Census
from ctxgc.core import (
    KEY_KINDS,
    WHOLE,
    ContextSegment,
    EngineOptions,
    Evidence,
    EvidenceKind,
    Explanation,
    GCState,
    Heap,
    KeepScore,
    KeyKind,
    Marks,
    RootSet,
    Scope,
    ScoreContext,
    bond_of,
    compute_roots,
    explicit_references,
    in_scope,
    keys_of,
    mark_all,
    mark_young,
    points_back,
    short_command,
)

if TYPE_CHECKING:
    from ctxgc.collector.calls import CallEffect
    from ctxgc.collector.reader import Item


Find = Callable[[str], ContextSegment | None]
RequestOf = Callable[[str], int | None]
"""The request that first carried a message; None if that is not known."""


class Hop(msgspec.Struct, frozen=True):
    """One link of a reason chain: a segment and how it was reached."""

    segment_id: str
    via: str


class _Ranked(NamedTuple):
    """Segments with their scores, lowest first, then oldest."""

    segments: list[ContextSegment]
    scores: list[float]


class Analysis:
    """Roots, marks and scores of one heap at one moment.

    What no root reaches is scored and sorted on demand, and so, separately, is the reachable:
    most collections find garbage enough, and those of a window ask for marks alone.
    """

    def __init__(
        self,
        state: GCState,
        scope: Scope,
        *,
        roots: RootSet,
        marks: Marks,
        scorer: KeepScore,
        context: Callable[[], ScoreContext],
        strong: Iterable[KeyKind] = KEY_KINDS,
    ) -> None:
        self.state = state
        self.scope = scope
        self.roots = roots
        self.marks = marks
        self.scorer = scorer
        self._context = context
        self._strong = frozenset(strong)
        self._in_scope = in_scope(state.heap, scope)

    @cached_property
    def context(self) -> ScoreContext:
        """What scores depend on besides the segments."""
        return self._context()

    @property
    def garbage(self) -> list[ContextSegment]:
        """What no root reaches in the order in which it would leave: the superseded first."""
        return self._ranked_garbage.segments

    @property
    def garbage_scores(self) -> list[float]:
        """The scores of the garbage, in its order."""
        return self._ranked_garbage.scores

    @cached_property
    def _ranked_garbage(self) -> _Ranked:
        stale, fresh = self._loose()
        first, then = self._by_score(stale), self._by_score(fresh)
        # To copy a list is to fetch all that is in it.
        if not first.segments:
            return then
        return _Ranked(first.segments + then.segments, first.scores + then.scores)

    @cached_property
    def live(self) -> list[ContextSegment]:
        """The reachable segments that are not roots, lowest score first, then oldest."""
        return self._ranked_live.segments

    @property
    def order(self) -> list[ContextSegment]:
        """The segments that are not roots, in the order in which they would leave."""
        return [*self.garbage, *self.live]

    @cached_property
    def scores(self) -> dict[str, float]:
        """The keep_score of every segment that is not a root."""
        ranked = self._ranked_live
        return self._garbage_scores | _by_id(ranked.segments, ranked.scores)

    def score(self, segment_id: str) -> float:
        """Return the keep_score of a segment that may leave."""
        known = self._garbage_scores.get(segment_id)
        return self.scores[segment_id] if known is None else known

    def may_leave(self, segment_id: str) -> bool:
        """Return whether a segment is within the scope and no root."""
        segment = self.state.heap.peek(segment_id)
        if segment is None or segment.tier != "working" or segment_id in self.roots:
            return False
        index = self.state.heap.index
        return self.scope != "minor" or segment_id in index.young or segment_id in index.touched_old

    def cold(
        self, is_cold: Callable[[ContextSegment], bool], min_tokens: int
    ) -> list[ContextSegment]:
        """Return the reachable segments of this size for which this is true, lowest score first."""
        large = [s for s in self._in_scope if (s.tokens or 0) >= min_tokens]
        found = [s for s in large if self._is_spared(s) and is_cold(s)]
        if not found:
            return []
        return sorted(found, key=lambda segment: self.score(segment.segment_id))

    def is_live(self, segment: ContextSegment) -> bool:
        """Return whether a segment counts as reachable: marked, or old in a minor collection."""
        if self.scope == "minor" and segment.generation == "old":
            return True
        return segment.segment_id in self.marks.came_from

    def _is_spared(self, segment: ContextSegment) -> bool:
        """Return whether a segment is reachable without being a root."""
        return self.is_live(segment) and segment.segment_id not in self.roots

    def _loose(self) -> tuple[list[ContextSegment], list[ContextSegment]]:
        """Return what no root reaches in order of arrival, the superseded apart from the others."""
        # Asked a million times, a set answers in half the time of the dict with the ways.
        reached = frozenset(self.marks.came_from)
        loose = [s for s in self._in_scope if s.segment_id not in reached]
        if self.scope != "major":
            loose = [s for s in loose if s.generation == "young"]
        stale = [s for s in loose if s.superseded_by is not None]
        return stale, [s for s in loose if s.superseded_by is None] if stale else loose

    @cached_property
    def _ranked_live(self) -> _Ranked:
        return self._by_score([s for s in self._in_scope if self._is_spared(s)])

    @cached_property
    def _garbage_scores(self) -> dict[str, float]:
        return _by_id(self.garbage, self.garbage_scores)

    def _by_score(self, segments: list[ContextSegment]) -> _Ranked:
        values = _levelled(segments, self.scorer.all(segments, self.context))
        order = sorted(range(len(segments)), key=values.__getitem__)
        return _Ranked([segments[n] for n in order], [values[n] for n in order])

    def is_reachable(self, segment_id: str) -> bool:
        """Return whether the roots reach a segment."""
        return segment_id in self.marks

    def evidence(self, segment: ContextSegment, request_of: RequestOf = lambda _: None) -> Evidence:
        """Return why a segment that no root reaches may leave."""
        is_stale = segment.superseded_by is not None
        if is_stale and _is_led_back(segment, self.state.heap):
            return self._unheld_since(segment, _UNREACHABLE)
        replaced = is_stale and self._would_live(segment)
        found = unheld(segment, self.state.heap.peek, replaced=replaced, request_of=request_of)
        return self._unheld_since(segment, found)

    def _unheld_since(self, segment: ContextSegment, found: Evidence) -> Evidence:
        """Return evidence that no root reaches a segment with the rule that held it last, if one is known."""
        if found.kind != "unreachable" or segment.segment_id not in self.state.let_go:
            return found
        rule, requests = self.state.let_go[segment.segment_id]
        return replace(found, rule=rule, requests=requests)

    def bond_lives(self, segment: ContextSegment) -> bool:
        """Return whether something that a segment is bonded to is live: it can only leave a stub then."""
        bond = bond_of(segment)
        return bond is not None and bond in self._live_bonds

    def _would_live(self, segment: ContextSegment) -> bool:
        """Tell whether the roots would reach a segment if nothing had taken its place."""
        if self.bond_lives(segment):
            return True
        live = self._live_keys
        return any(
            key[:2] in live if key[2] == WHOLE else key in live or (*key[:2], WHOLE) in live
            for key in keys_of(segment)
        )

    @cached_property
    def _live_bonds(self) -> set[str | None]:
        return {bond_of(s) for s in self.state.heap.working() if self.is_live(s)}

    @cached_property
    def _live_keys(self) -> set[tuple[str | int, ...]]:
        """The strong keys of all that is live: with the card for a view of a file, and without."""
        live = [keys_of(s) for s in self.state.heap.working() if self.is_live(s)]
        keys = {key for held in live for key in held if key[0] in self._strong}
        return {*keys, *(key[:2] for key in keys)}

    def chain(self, segment_id: str) -> tuple[Hop, ...]:
        """Return why a segment is reachable: the root with its reason, then link by link."""
        ids = self.marks.chain(segment_id)
        if not ids:
            return ()
        hops = [Hop(ids[0], ", ".join(self.roots.why(ids[0])) or "live old segment")]
        hops.extend(Hop(to, self._via(at, to)) for at, to in pairwise(ids))
        return tuple(hops)

    def explain(self, segment_id: str) -> Explanation:
        """Return the terms of a segment's score."""
        return self.scorer.explain(self.state.heap.get(segment_id), self.context)

    def _via(self, source: str, target: str) -> str:
        heap = self.state.heap
        a, b = heap.get(source), heap.get(target)
        named = explicit_references(a).get(target)
        if named is not None:
            return named
        if bond_of(a) is not None and bond_of(a) == bond_of(b):
            return "bond"
        shared = {key[:2] for key in keys_of(a)} & {key[:2] for key in keys_of(b)}
        kind, value = min(shared)
        return f"same {kind} {value}"


def analyze(state: GCState, options: EngineOptions, scope: Scope = "major") -> Analysis:
    """Find roots and what they reach, score the rest, and put it in the order of leaving."""
    heap, roots = state.heap, compute_roots(state)
    marker = mark_all if scope == "major" else mark_young
    marks = marker(heap, roots, options.strong)
    scorer = KeepScore(options.profile, options.weights)

    def context() -> ScoreContext:
        return ScoreContext(
            now=state.now,
            step=heap.step,
            current_task_id=state.current_task_id,
            task_dependencies=state.task_dependencies,
            soft=heap.mentions.soft_weights({r: heap.get(r).text for r in roots}),
        )

    return Analysis(
        state,
        scope,
        roots=roots,
        marks=marks,
        scorer=scorer,
        context=context,
        strong=options.strong,
    )


def _by_id(segments: list[ContextSegment], scores: list[float]) -> dict[str, float]:
    return dict(zip([segment.segment_id for segment in segments], scores, strict=True))


def _levelled(segments: list[ContextSegment], scores: list[float]) -> list[float]:
    """Return the scores with every member of a bond at that of its most valuable one."""
    bonds = [s.call_id if s.bond_id is None else s.bond_id for s in segments]
    best: dict[str | None, float] = {}
    for bond, score in zip(bonds, scores, strict=True):
        known = best.get(bond)
        if known is None or score > known:
            best[bond] = score
    return [s if b is None else best[b] for b, s in zip(bonds, scores, strict=True)]


# -- Why a segment may leave


_UNREACHABLE = Evidence(kind="unreachable")


def unheld(
    segment: ContextSegment,
    find: Find,
    *,
    replaced: bool,
    request_of: RequestOf = lambda _: None,
) -> Evidence:
    """Return why a segment that no root reaches may leave.

    `replaced` says that a root would reach it if nothing had taken its place; that decided then.
    """
    if segment.superseded_by is None:
        return _UNREACHABLE
    found = superseding(segment, find, request_of)
    return found if replaced else replace(found, kind="unreachable")


def is_replaced(segment: ContextSegment, heap: Heap) -> bool:
    """Tell whether something newer says the same; an edited file is in its old view but for a few lines.

    It does not if it only points back at what was there before, nor does a copy that is shown no longer.
    """
    if segment.superseded_how in (None, "edited"):
        return False
    newer = heap.peek(segment.superseded_by or "")
    is_shown = newer is None or newer.tier == "working"
    return is_shown or not (segment.superseded_how == "identical" or _is_led_back(segment, heap))


def _is_led_back(segment: ContextSegment, heap: Heap) -> bool:
    """Tell whether what is shown of that which superseded a segment points back at what was there before."""
    newer = segment.superseded_by or ""
    stand_ins = map(heap.get, heap.backrefs.get(newer, ()))
    return any(points_back(each.text) for each in stand_ins if each.derived_from == newer)


def superseding(segment: ContextSegment, find: Find, request_of: RequestOf) -> Evidence:
    """Return the evidence that something newer took the place of a segment."""
    newer, how = find(segment.superseded_by or ""), segment.superseded_how or ""
    kind: EvidenceKind = (
        "copy" if how == "identical" else "resolved" if how == "resolved" else "superseded"
    )
    if newer is None:
        return Evidence(kind=kind, how=how)
    request = request_of(newer.message_id) if newer.message_id is not None else None
    return Evidence(kind=kind, how=how, by=_described(newer), request=request or 0)


def _described(segment: ContextSegment) -> str:
    if segment.access == "run" and segment.command:
        return f"the run of {short_command(segment.command)}"
    if segment.file_path and (segment.access is not None or segment.type == "code"):
        return f"the {segment.access or segment.type} of {segment.file_path}"
    return segment.segment_id


# -- Evidence of death: which results may leave before the next request, and by what right


DEAF = 1 << 60
"""So much news an item has heard that none can let it die sooner."""
ELSEWHERE = 0.7
_NEVER = -1_000
_FAR = 1_000_000


class Clues:
    """When files were last named or edited, and when the work was last checked or steered."""

    def __init__(self) -> None:
        self._named: dict[str, int] = {}
        self._edited: dict[str, dict[str, int]] = {}
        self._checked = _NEVER
        self._steered = _NEVER
        self.news = 0
        """How often something was heard that may let a view die sooner."""
        self._lists: dict[str, dict[str, None]] = {}

    def call(self, call: CallEffect, request: int) -> None:
        """Take in a tool call that the answer to a request made."""
        self._named.update(dict.fromkeys(call.named, request))
        for name in call.edited:
            self._edited.setdefault(name, {})[call.file] = request
        if call.checks:
            self._checked = request
        if call.checks or call.edited:
            self.news += 1

    def touch(self, path: str, request: int) -> None:
        """A file was as good as named: a new result stands on an old view of it."""
        self._named[path] = request

    def write_list(self, tool: str, source: str) -> None:
        """Take in a to-do list that a tool wrote."""
        self._lists.setdefault(tool, {}).setdefault(source)

    def drop_list(self, source: str) -> None:
        """A to-do list was not written after all, or is no longer shown."""
        for lists in self._lists.values():
            lists.pop(source, None)

    def is_replaced(self, item: Item) -> bool:
        """Tell whether the tool of a to-do list has written a newer one."""
        lists = self._lists.get(item.call.tool, {})
        return item.source in lists and next(reversed(lists)) != item.source

    def user(self, request: int) -> None:
        """Take in a message of the user."""
        self._steered = request
        self.news += 1

    def idle(self, item: Item, request: int) -> int:
        """Return for how many requests no call named a file of a result, at most since it was first sent."""
        return min(request - item.born, request - self.last_named(item) - 1)

    def last_named(self, item: Item) -> int:
        """Return the request whose answer last named a file that a result is about; far back if none did."""
        return max([self._named.get(name, _NEVER) for name in item.files], default=_NEVER)

    def over_for(self, item: Item, request: int) -> int:
        """Return for how many requests a result is idle since the user spoke again; 0 before that."""
        over = request - 1 - self._steered if self._steered >= item.born else 0
        return min(over, self.idle(item, request))

    def edited_at(self, item: Item) -> int:
        """Return the request whose answer edited a view's file last; far back if none did."""
        edits = self._edited.get(item.call.path, {}).items()
        return max([n for file, n in edits if _same_file(file, item.call.file)], default=_NEVER)

    def edited_since(self, item: Item) -> bool:
        """Tell whether a view's file was edited after it was viewed."""
        return self.edited_at(item) >= item.born

    def bonus(self, item: Item, how: Preset) -> int:
        """Return the idle requests that a check or a word of the user since is worth."""
        last = max(self.last_named(item), item.born - 1)
        checked = how.after_check if self._checked > last else 0
        return checked + (how.after_user if self._steered > last else 0)


def _same_file(one: str, other: str) -> bool:
    """Tell whether two paths may name one file; a shell may name it by its last part alone, or not at all."""
    if not one or not other or one == other:
        return True
    return one.endswith(f"/{other}") or other.endswith(f"/{one}")


def evidence(
    item: Item, clues: Clues, census: Census, how: Preset, request: int
) -> tuple[str | None, int]:
    """Return why an item may leave (None while it may not) and for how long it was idle."""
    age = request - item.born
    if age < 1:
        return None, 0
    if item.kind == "todo":
        return ("todo" if clues.is_replaced(item) else None), age
    idle = clues.idle(item, request)
    if item.shows_file and clues.edited_since(item):
        return ("edited" if idle >= 1 else None), 0
    if item.shows_file and _stands_elsewhere(item, census):
        return "elsewhere", idle
    counted = _counted(item, clues, how, request)
    if item.rerun_at:
        return "rerun", counted
    return ("idle" if counted >= held_for(item, how) else None), counted


def _counted(item: Item, clues: Clues, how: Preset, request: int) -> int:
    """Return for how many requests an item counts as idle.

    What was fetched for what it says is in work as long as the request runs for which it was fetched.
    """
    if item.call.gathers:
        return clues.over_for(item, request)
    idle = clues.idle(item, request)
    return idle + (clues.bonus(item, how) if idle >= how.bonus_from else 0)


def held_for(item: Item, how: Preset) -> int:
    """Return for how many idle requests a result is held that nothing else speaks against."""
    return how.hold if item.shows_file and not item.call.gathers else how.work_hold


FILE_IN_WORK, WORK_IN_HAND, NOT_YET_SHOWN = "file in work", "work in hand", "not yet shown"
WORK_RULES = frozenset({FILE_IN_WORK, WORK_IN_HAND, NOT_YET_SHOWN})
"""Roots that let go by themselves, and that yield where room must be made."""


def work_rule(item: Item, request: int) -> str:
    """Return the root rule that holds a result while nothing speaks against it."""
    if request <= item.born:
        return NOT_YET_SHOWN
    return FILE_IN_WORK if item.shows_file and not item.call.gathers else WORK_IN_HAND


def evidence_for(item: Item, why: str, clues: Clues, request: int) -> Evidence:
    """Return the evidence behind a right to leave, with its data.

    What nothing speaks against is held by a root: a view while its file is in work, other results while they
    are work in hand. Once such a rule lets go, they are idle.
    """
    if why == "edited":
        by = f"the edit of {item.call.file or item.call.path}"
        return Evidence(kind="superseded", how="edited", by=by, request=clues.edited_at(item))
    if why == "elsewhere":
        return Evidence(kind="copy")
    if why == "todo":
        return Evidence(kind="superseded", how="newer list")
    if why == "rerun":
        return Evidence(kind="superseded", how="re-run", request=item.rerun_at)
    idle = clues.over_for if item.call.gathers else clues.idle
    return Evidence(kind="idle", rule=work_rule(item, request), requests=idle(item, request))


def next_look(
    item: Item, why: str | None, clues: Clues, how: Preset, request: int
) -> tuple[int, int]:
    """Return before which request an item that nobody wakes is as it is now, and what it has heard."""
    if item.kind == "todo" or request <= item.born:
        return request + 1, DEAF
    if why is not None:
        return item.plan_until, DEAF
    if item.shows_file and clues.edited_since(item):
        return request + 1, DEAF
    idle, held = clues.idle(item, request), held_for(item, how)
    if item.call.gathers:
        over = clues.over_for(item, request)
        return request + (held - over if 0 < over < held else _FAR), clues.news
    if idle < how.bonus_from:
        return request + max(1, min(held, how.bonus_from) - idle), DEAF
    return request + held - idle - clues.bonus(item, how), clues.news


def overdue(item: Item, clues: Clues, how: Preset, request: int) -> int:
    """Return for how many requests an item could have left already, as far as its age tells."""
    if item.kind == "todo":
        return 0
    idle = clues.over_for if item.call.gathers else clues.idle
    return max(0, idle(item, request) - held_for(item, how))


def haunted(
    item: Item, why: str | None, idle: int, how: Preset, *, delay: int, request: int
) -> tuple[str | None, int]:
    """Return the evidence against an item whose like was recalled after it had left.

    It is held `delay` requests longer, and no class of it leaves young.
    """
    is_due = idle >= held_for(item, how) + delay if why == "idle" else request - item.born > delay
    return (why if is_due else None), max(0, idle - delay)


def _stands_elsewhere(item: Item, census: Census) -> bool:
    """Tell whether most lines of a view stand in other messages too."""
    if item.elsewhere is None:
        keys = [item.text.keys[line] for line in item.shown if item.text.keys[line]]
        others = sum(1 for key in keys if census.keys[key] > 1)
        item.elsewhere = bool(keys) and others >= ELSEWHERE * len(keys)
    return item.elsewhere
