"""S4's priorities: the matrix and the decision tree, as one rank from 1 (always stays) to 4 (goes first).

The first rule of the matrix that holds decides; rules that keep come before rules that prune, so that a doubt
is settled in favour of the content. What no rule holds for goes through S4's decision tree.
`plan_by_priority` is S4's pruner over bare content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum, StrEnum
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple

from ctxgc.collector.sweep import choose, order_of_leaving
from ctxgc.config import LAST_RESORT, PriorityMatrix, PriorityRule
from ctxgc.core import (
    ContextSegment,
    Evidence,
    GCState,
    Heap,
    PruningCandidate,
    PruningPlan,
    assemble,
    candidate_for,
    checked_time,
    is_request,
)
from ctxgc.errors import InputError


class Priority(IntEnum):
    """How much content is worth, from S4's first priority to its last."""

    ALWAYS_KEEP = 1
    KEEP_IF_RELEVANT = 2
    KEEP_IF_SPACE = 3
    ALWAYS_PRUNE = 4


class Ranked(NamedTuple):
    """The priority of a segment, and the rule of the matrix or the branch of the tree that gives it."""

    priority: Priority
    rule: str


class Category(StrEnum):
    """What content is, in the words of S4's second chart."""

    CURRENT_TASK = "current_task"
    RECENT_HISTORY = "recent_history"
    OLD_HISTORY = "old_history"
    SYSTEM_PROMPTS = "system_prompts"
    EXAMPLES = "examples"


_SYSTEM_KINDS = frozenset({"system_prompt", "system_role_prompt"})
_EXAMPLE_KINDS = frozenset({"examples", "example", "templates", "template"})
_TASK_KINDS = frozenset(
    {
        "current_task", "current_task_description",
        "acceptance_criteria", "current_task_acceptance_criteria",
    }
)  # fmt: skip
_HISTORY = frozenset({"task_history"})


def kinds_of(segment: ContextSegment) -> frozenset[str]:
    """Return all kinds of content that a segment is, in S4's words: by its role and part, and its tags."""
    return frozenset((kind_of(segment), *segment.tags))


def kind_of(segment: ContextSegment) -> str:
    """Return what kind of content a segment is by its role and part."""
    if segment.role == "system" or segment.source == "system":
        return "system_prompt"
    if is_request(segment):
        return "user_message"
    if segment.failed:
        return "error"
    if segment.part in ("tool_call", "tool_result", "thinking", "media"):
        return segment.part  # a tool result in a user message is not from the user
    return f"{segment.role or 'agent'}_{segment.type}"


# -- Focus: what the work is about now


@dataclass(frozen=True, kw_only=True)
class Focus:
    """What the work is about now.

    Args:
        now: the present time.
        current_task_id: the current task.
        task_dependencies: the tasks that it depends on.
        task_order: the tasks in the order in which they were begun, the current one included or not.
        task_request: the segments of the message that asked for the current task.
        active_file: the file being edited.
        recent_minutes: younger content is recent, older is old.
    """

    now: datetime
    current_task_id: str | None = None
    task_dependencies: frozenset[str] = frozenset()
    task_order: tuple[str, ...] = ()
    task_request: frozenset[str] = frozenset()
    active_file: str | None = None
    recent_minutes: float = 30.0

    def __post_init__(self) -> None:
        checked_time("now", self.now)
        if self.recent_minutes < 0:
            raise InputError(
                f"recent_minutes cannot be {self.recent_minutes}",
                hint="zero or more",
                field="recent_minutes",
            )

    @classmethod
    def of(cls, state: GCState) -> Focus:
        """Return what the work on a heap is about."""
        latest: dict[str, int] = {}
        for segment in state.heap:
            if segment.task_id is not None:
                latest[segment.task_id] = max(segment.position, latest.get(segment.task_id, -1))
        return cls(
            now=state.now,
            current_task_id=state.current_task_id,
            task_dependencies=state.task_dependencies,
            task_order=tuple(sorted(latest, key=latest.__getitem__)),
            task_request=_task_request(state.heap, state.current_task_id),
            active_file=state.active_file,
        )

    def tasks_ago(self, task_id: str | None) -> int | None:
        """Return how many tasks ago one was the current one; None if that is not known."""
        return self._distances.get(task_id)

    @cached_property
    def _distances(self) -> dict[str | None, int]:
        earlier = [task for task in self.task_order if task != self.current_task_id]
        latest = dict.fromkeys(reversed(earlier))
        distances: dict[str | None, int] = {task: n for n, task in enumerate(latest, start=1)}
        if self.current_task_id is not None:
            distances[self.current_task_id] = 0
        return distances

    def in_active_file(self, segment: ContextSegment) -> bool:
        """Return whether a segment shows the file being edited as it is now."""
        same = self.active_file is not None and segment.file_path == self.active_file
        return same and segment.superseded_by is None

    def is_relevant(self, segment: ContextSegment) -> bool:
        """Return whether a segment concerns the current task, one it depends on, or the active file."""
        task = segment.task_id
        if task is not None and (task == self.current_task_id or task in self.task_dependencies):
            return True
        return self.in_active_file(segment)

    def is_recent(self, moment: datetime) -> bool:
        """Return whether a moment lies within the recent minutes."""
        return (self.now - moment).total_seconds() < self.recent_minutes * 60

    def was_referenced_recently(self, segment: ContextSegment) -> bool:
        """Return whether something referred to a segment of late; where no time is known, ever."""
        if segment.last_touched_at <= segment.created_at:
            return segment.refcount > 0
        return self.is_recent(segment.last_touched_at)

    def is_of_another_task(self, segment: ContextSegment) -> bool:
        """Return whether a segment belongs to a task that the current one does not need."""
        task = segment.task_id
        return task not in (None, self.current_task_id) and task not in self.task_dependencies

    def category(self, segment: ContextSegment) -> Category:
        """Return the category of a segment.

        Recent content of the current task is recent history; older content of it is not old history
        but information about the task.
        """
        kinds, task = kinds_of(segment), segment.task_id
        if kinds & _SYSTEM_KINDS:
            return Category.SYSTEM_PROMPTS
        if kinds & _EXAMPLE_KINDS:
            return Category.EXAMPLES
        if kinds & _TASK_KINDS and task in (None, self.current_task_id):
            return Category.CURRENT_TASK
        if self.is_recent(segment.created_at):
            return Category.RECENT_HISTORY
        own = task is not None and task == self.current_task_id
        return Category.CURRENT_TASK if own else Category.OLD_HISTORY


def _task_request(heap: Heap, task: str | None) -> frozenset[str]:
    """Return the segments of the request that began a task; without a task, of the first request."""
    index = heap.root_index
    if task is None:
        return frozenset(index.messages.get(index.first_request or "", ()))
    of_task = (heap.get(segment_id) for segment_id in index.tasks.get(task, ()))
    said = min((s for s in of_task if is_request(s)), key=attrgetter("position"), default=None)
    if said is None:
        return frozenset()
    return frozenset(index.messages.get(said.message_id or said.segment_id, ()))


# -- Choosing by priority: what leaves of bare content, as S4's pruner has it


class Weighed(NamedTuple):
    """A segment with its own points and rank, and those of its bond, which decide."""

    segment: ContextSegment
    score: int
    ranked: Ranked
    best: int
    priority: Priority
    bond: tuple[str, ...]

    @property
    def rank(self) -> tuple[int, int]:
        """Its place among what stays, the best first."""
        return self.priority, -self.best

    def candidate(self, now: datetime, need: int) -> PruningCandidate:
        """Return the segment as a candidate; no score outweighs a priority."""
        evidence = Evidence(kind="least_worth", tokens=need)
        if self.priority is Priority.ALWAYS_PRUNE:
            evidence = Evidence(kind="priority", how=self.ranked.rule)
        score = self.best - 1000.0 * self.priority
        return candidate_for(self.segment, now, score, evidence, reachable=True, bond=self.bond)

    def why(self, *, left: bool) -> str:
        """Return why the segment stays or leaves."""
        own, rule = self.ranked
        if not left and self.priority < own:
            return "bonded to what stays"
        if own in (1, 4) or (own is Priority.KEEP_IF_RELEVANT and not left):
            return rule
        return f"{rule}: {self.score} points, {'no room left' if left else 'fits'}"


def weigh(
    segments: Sequence[ContextSegment],
    points: Mapping[str, int],
    focus: Focus,
    matrix: PriorityMatrix,
    threshold: float,
) -> dict[str, Weighed]:
    """Return segments with their priorities by id, oldest first; bonds have their best points and priority.

    What may stay only if there is space, and has no more points than the threshold, always leaves.
    """
    ranks = rank(segments, focus, matrix)
    bonds: dict[tuple[bool, str], list[ContextSegment]] = {}
    for segment in sorted(segments, key=attrgetter("created_at")):
        name = segment.bond_id or segment.segment_id
        bonds.setdefault((segment.bond_id is None, name), []).append(segment)
    weighed: dict[str, Weighed] = {}
    for bond in bonds.values():
        ids = tuple(segment.segment_id for segment in bond)
        best = max(points[i] for i in ids)
        priority = min(ranks[i].priority for i in ids)
        if priority is Priority.KEEP_IF_SPACE and best <= threshold:
            priority = Priority.ALWAYS_PRUNE
        weighed |= {
            s.segment_id: Weighed(s, points[s.segment_id], ranks[s.segment_id], best, priority, ids)
            for s in bond
        }
    return weighed


def plan_by_priority(weighed: Iterable[Weighed], focus: Focus, target: int) -> PruningPlan:
    """Return what leaves down to a target: all of the fourth priority, then the least of third and second."""
    weighed = list(weighed)
    always = [one for one in weighed if one.priority is Priority.ALWAYS_PRUNE]
    size = sum(one.segment.tokens or 0 for one in weighed)
    need = max(0, size - sum(one.segment.tokens or 0 for one in always) - target)
    rest = {
        one.segment.segment_id: one.candidate(focus.now, need)
        for one in weighed
        if one.priority in (Priority.KEEP_IF_RELEVANT, Priority.KEEP_IF_SPACE)
    }
    chosen = choose(order_of_leaving(rest.values()), rest.get, need)
    leaving = [*(one.candidate(focus.now, need) for one in always), *chosen]
    return assemble(leaving, target_tokens=max(0, size - target), tokens_before=size)


def essentials(segments: Sequence[ContextSegment], focus: Focus) -> dict[str, str]:
    """Return what S4's last resort keeps, by id with its rule: essentials, pins, what is bonded to them."""
    ranks = rank(segments, focus, LAST_RESORT)
    rules = {"pinned", *(rule.name for rule in LAST_RESORT.always_keep)}
    named = {i: ranked.rule for i, ranked in ranks.items() if ranked.rule in rules}
    bonds = {s.bond_id for s in segments if s.segment_id in named} - {None}
    bonded = [s.segment_id for s in segments if s.bond_id in bonds and s.segment_id not in named]
    return named | dict.fromkeys(bonded, "bonded")


# -- The rank of many segments, in one pass


def rank_heap(state: GCState, matrix: PriorityMatrix | None = None) -> dict[str, Ranked]:
    """Return the priority of every working segment of a heap, by its id."""
    return rank(state.heap.working(), Focus.of(state), matrix)


def kept_always(state: GCState, matrix: PriorityMatrix) -> dict[str, str]:
    """Return what a configured rule of `always_keep` holds, by segment with the name of the rule."""
    own = matrix.own_always_keep()
    if not own:
        return {}
    bare = PriorityMatrix(always_keep=own, keep_if_relevant=(), keep_if_space=(), always_prune=())
    names = {rule.name for rule in own}
    ranks = rank_heap(state, bare)
    return {i: ranked.rule for i, ranked in ranks.items() if ranked.rule in names}


def rank(
    segments: Sequence[ContextSegment], focus: Focus, matrix: PriorityMatrix | None = None
) -> dict[str, Ranked]:
    """Return the priority of each segment by its id; of equally old ones the last is the newest."""
    judge = _Judge(focus, matrix if matrix is not None else PriorityMatrix())
    oldest_first = sorted(segments, key=attrgetter("created_at"))
    return {segment.segment_id: judge.rank(segment) for segment in reversed(oldest_first)}


class _Entry:
    """A rule with its priority, and the messages that it was found to hold for so far."""

    def __init__(self, priority: Priority, rule: PriorityRule) -> None:
        self.priority = priority
        self.rule = rule
        self.held: set[str] = set()

    def means(self, kinds: frozenset[str], *, in_active_file: bool, superseded: bool) -> bool:
        rule = self.rule
        return (
            rule.name in kinds
            or not kinds.isdisjoint(rule.kinds)
            or (rule.active_file and in_active_file)
            or (rule.superseded and superseded)
        )

    def holds(self, segment: ContextSegment, focus: Focus) -> bool:
        """Return whether the conditions allow a segment; to be asked of the newest first."""
        rule = self.rule
        if rule.resolved is not None and rule.resolved is not _is_resolved(segment):
            return False
        if rule.current_task and segment.task_id not in (None, focus.current_task_id):
            return False
        if rule.tasks_ago is not None and not _within(
            focus.tasks_ago(segment.task_id), rule.tasks_ago
        ):
            return False
        return rule.newest is None or self._is_among_newest(segment, rule.newest)

    def _is_among_newest(self, segment: ContextSegment, newest: int) -> bool:
        message = segment.message_id or segment.segment_id
        if message not in self.held and len(self.held) >= newest:
            return False
        self.held.add(message)
        return True


class _Judge:
    """Ranks segments, the newest first."""

    def __init__(self, focus: Focus, matrix: PriorityMatrix) -> None:
        self._focus = focus
        self._entries = [
            _Entry(priority, rule)
            for priority, rules in (
                (Priority.ALWAYS_KEEP, matrix.always_keep),
                (Priority.ALWAYS_PRUNE, matrix.always_prune),
                (Priority.KEEP_IF_RELEVANT, matrix.keep_if_relevant),
                (Priority.KEEP_IF_SPACE, matrix.keep_if_space),
            )
            for rule in rules
        ]
        self._meant: dict[tuple[frozenset[str], bool, bool], tuple[_Entry, ...]] = {}

    def rank(self, segment: ContextSegment) -> Ranked:
        """Return the priority of a segment: what a rule keeps, pins, the other rules, then the tree."""
        entry = self._entry(segment)
        if entry is not None and entry.priority is Priority.ALWAYS_KEEP:
            return Ranked(entry.priority, entry.rule.name)
        if segment.pinned or segment.policy == "locked":
            return Ranked(Priority.ALWAYS_KEEP, "pinned" if segment.pinned else "locked")
        if entry is None:
            return self._branch(segment)
        priority = entry.priority
        if priority is Priority.KEEP_IF_RELEVANT and not self._focus.is_relevant(segment):
            priority = Priority.KEEP_IF_SPACE
        return Ranked(priority, entry.rule.name)

    def _entry(self, segment: ContextSegment) -> _Entry | None:
        kinds = kinds_of(segment)
        if segment.segment_id in self._focus.task_request:
            kinds |= {"current_task"}
        found = self._first(segment, kinds)
        if found is None and self._focus.is_of_another_task(segment):
            found = self._first(segment, _HISTORY)
        return found

    def _first(self, segment: ContextSegment, kinds: frozenset[str]) -> _Entry | None:
        """Return the first rule that holds; the others are asked too, since some count."""
        flags = self._focus.in_active_file(segment), segment.superseded_by is not None
        meant = self._meant.get((kinds, *flags))
        if meant is None:
            active, stale = flags
            meant = tuple(
                e for e in self._entries if e.means(kinds, in_active_file=active, superseded=stale)
            )
            self._meant[kinds, active, stale] = meant
        held = [entry for entry in meant if entry.holds(segment, self._focus)]
        return held[0] if held else None

    def _branch(self, segment: ContextSegment) -> Ranked:
        question, yes, no = _TREE[self._focus.category(segment)]
        return yes if question(self._focus, segment) else no


def _is_resolved(segment: ContextSegment) -> bool:
    return segment.failed and segment.superseded_by is not None


def _within(distance: int | None, span: tuple[int, int | None]) -> bool:
    first, last = span
    return distance is not None and first <= distance and (last is None or distance <= last)


_TREE: dict[Category, tuple[Callable[[Focus, ContextSegment], bool], Ranked, Ranked]] = {
    Category.CURRENT_TASK: (
        lambda _, segment: not kinds_of(segment).isdisjoint(_TASK_KINDS),
        Ranked(Priority.ALWAYS_KEEP, "says what the current task is"),
        Ranked(Priority.KEEP_IF_SPACE, "of the current task"),
    ),
    Category.RECENT_HISTORY: (
        Focus.is_relevant,
        Ranked(Priority.KEEP_IF_RELEVANT, "recent and relevant to the current task"),
        Ranked(Priority.KEEP_IF_SPACE, "recent"),
    ),
    Category.OLD_HISTORY: (
        Focus.was_referenced_recently,
        Ranked(Priority.KEEP_IF_SPACE, "old, but referenced recently"),
        Ranked(Priority.ALWAYS_PRUNE, "old and not referenced recently"),
    ),
    Category.SYSTEM_PROMPTS: (
        lambda *_: True,
        Ranked(Priority.ALWAYS_KEEP, "a system prompt"),
        Ranked(Priority.ALWAYS_KEEP, "a system prompt"),
    ),
    Category.EXAMPLES: (
        Focus.is_relevant,
        Ranked(Priority.KEEP_IF_RELEVANT, "an example that is relevant now"),
        Ranked(Priority.ALWAYS_PRUNE, "an example that is not relevant now"),
    ),
}
