"""A session worked on segment by segment, for doors whose users name segments: the MCP server.

Messages and notes come in under ids of their own, plans of the collector are carried out on the view, and
segments are summarised and brought back. Everything is the session's: its view stays valid, its budget
counts, its store holds what happened, and what leaves can be undone and recalled through every door.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from ctxgc.collector import (
    Analysis,
    Collection,
    GCEngine,
    GCTriggerReason,
    Planner,
    check_plan,
    engine_options,
)
from ctxgc.core import (
    Action,
    ContextSegment,
    Evidence,
    Format,
    GCState,
    Message,
    PruningCandidate,
    PruningPlan,
    assemble,
    candidate_for,
    checked_target,
    long_tombstone,
    plan_summary,
)
from ctxgc.errors import InputError, MessageError, PlanError
from ctxgc.guard import ThrashBreaker
from ctxgc.invariants import check, first_spoken
from ctxgc.session.delete import DELETED
from ctxgc.session.part import SessionPart
from ctxgc.session.recall import gc_state
from ctxgc.session.session import Session
from ctxgc.session.view import HistoryChange
from ctxgc.wire import replace_text, text_message

PruneStrategy = Literal["stash", "delete", "auto"]

FIRM = frozenset(
    {
        "pinned", "current task", "active file", "open file", "breakpoint", "instructions",
        "original request", "open tool call", "session invariant",
    }
)  # fmt: skip
"""Roots that not even an explicit request moves: pins, and what the host works on."""

_COMPRESSIBLE = (None, "text", "tool_result")
_MOST_TEXT = 1_000_000
_TRIES = 5
"""How often more is chosen, because what stays in the place of what leaves was longer than reckoned."""


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """What will leave, and what stays although it was named, each with the reason."""

    plan: PruningPlan
    kept: dict[str, str]


class SegmentWork(SessionPart):
    """Works on the segments of a session.

    Args:
        session: whose they are; nobody else may use it meanwhile.
        who: names the door in the history of collections.
        held: further segments that are roots, each with the rule; ask again when it changes.
    """

    def __init__(self, session: Session, who: str, held: Mapping[str, str] | None = None) -> None:
        self._parts = session.inspect()
        super().__init__(self._parts.core)
        self._session = session
        self._who = who
        self.held = dict(held or {})
        self.heap = self._heap

    @property
    def tokens(self) -> int:
        """How many tokens the session has in use."""
        return self._accounting.budget.total_tokens()

    @property
    def context_limit(self) -> int:
        """The size of the window in tokens."""
        return self._accounting.budget.context_limit

    # -- what comes in ------------------------------------------------------------------------------

    def put(self, segments: Sequence[ContextSegment]) -> None:
        """Take in segments that are no messages of a provider: each becomes one, under its own id.

        The agent's own words come from the assistant, everything else from the user, nothing from the
        system; and nothing comes between a tool call and its result. A blank one is only stashed.

        Raises:
            MessageError: one holds a likely key, and the configuration refuses those; nothing came in.
        """
        view = self._view
        border = self._border()
        # They may refer to each other, so they are linked once all are there.
        own = {s.segment_id: replace(s, message_id=s.segment_id, references=()) for s in segments}
        messages = self._as_messages(
            [s for s in own.values() if s.text.strip()],
            opens=first_spoken(view.messages[:border]) is None,
        )
        self._parts.intake.refuse_keys(messages)
        new = [*view.messages[:border], *messages, *view.messages[border:]]
        change = HistoryChange(gone=[], edited=[], added=messages)
        # Nothing else is in such a message, so its segment is what costs all that the message costs.
        for message in messages:
            tokens = self._accounting.tokens(message)
            own[message.message_id] = replace(own[message.message_id], tokens=tokens)
        self._parts.editor.apply(new, change, "added", created_by=self._who, given=own)
        self._stash_blank([s for s in own.values() if not s.text.strip()])
        for segment in segments:
            self.heap.annotate(segment.segment_id, references=segment.references)
        self._archive.note_unsaved(own)

    def _as_messages(self, segments: Sequence[ContextSegment], *, opens: bool) -> list[Message]:
        # Some providers refuse an assistant that speaks first, and which one it is may not be known yet.
        roles = ["user" if opens and not n else _role(s) for n, s in enumerate(segments)]
        return [
            text_message(role, s.text, self._format, s.segment_id, "conversation")
            for role, s in zip(roles, segments, strict=True)
        ]

    @property
    def _format(self) -> Format:
        return self._state.format or self._view.format or "openai"

    def _border(self) -> int:
        """The last place for a text: before calls and thinking that wait for what follows them."""
        messages, waiting = self._view.messages, set(self._view.waiting.values())
        probe = text_message("user", "-", self._format, "")
        end = (n for n, message in enumerate(messages) if message.message_id in waiting)
        border = next(end, len(messages))
        broken = _broken(messages)
        while border and not broken >= _broken([*messages[:border], probe, *messages[border:]]):
            border -= 1
        return border

    def take(self, message: Message, at: datetime, *, is_arrival: bool) -> None:
        """Take in a provider's message under its own id, or its parts as texts where it cannot come next.

        It cannot if the session has another format, or if it answers a call that is not there. What is no
        arrival, because a host takes its own history in, comes in as texts too.

        Raises:
            MessageError: it holds a likely key, and the configuration refuses those; it did not come in.
        """
        self._parts.intake.refuse_keys([message])
        said = {"created_at": at, "task_id": self._state.task_id}
        try:
            if not is_arrival:
                raise MessageError("the history is its host's")
            self._parts.intake.take_named(message, said)
        except MessageError:
            made = self._segmenter.prepare(message)
            self.put(
                [
                    replace(
                        segment,
                        segment_id=f"{message.message_id}.{place}",
                        text=_whole_text(message, place),
                        tokens=None,
                        **said,
                    )
                    for place, segment in enumerate(made)
                ]
            )

    def _stash_blank(self, segments: Sequence[ContextSegment]) -> None:
        for segment in segments:
            self.heap.add(segment)
            self.heap.stash(segment.segment_id)

    def note_arrivals(self) -> None:
        """Count a request, unless a host sends the session and counts its own."""
        if self._state.sent_at is None:
            self._state.requests += 1

    # -- what may leave -----------------------------------------------------------------------------

    def state(self) -> GCState:
        """Return what the root rules have to know."""
        state = gc_state(self._core)
        alongside = self.tokens - self.heap.ledger.working.tokens
        return replace(state, held={**self._recalled(), **self.held}, alongside=alongside)

    def _recalled(self) -> dict[str, str]:
        """What was recalled is held for some collections."""
        now, ids_of = len(self._log.applied), self._segmenter.segment_ids
        held = (m for m, until in self._state.held_until.items() if until > now)
        return {i: "recalled" for message_id in held for i in ids_of(message_id)}

    @property
    def engine(self) -> GCEngine:
        """The engine that plans by segments, with the options in force."""
        return GCEngine(engine_options(self._options.config, self.context_limit))

    def plan(self, target_tokens: int | None) -> PruningPlan:
        """Return what would leave, with what the session counts once it has.

        Args:
            target_tokens: where to land; None is the configured target, or all garbage when that is met.

        Raises:
            InputError: the target is below zero.
        """
        goal = target_tokens
        if goal is None:
            percent = self._options.config.target_percent
            goal = int(self.context_limit * percent / 100)
        excess = max(0, self.tokens - checked_target(goal))
        engine, need = self.engine, excess if excess or target_tokens is not None else None
        analysis = engine.analyze(self.state())
        for _ in range(_TRIES):
            made = Planner(analysis, engine.options).plan(need)
            found = self._settled(made, need and excess).plan
            if need is None or not found.shortfall or made.shortfall:
                break
            need += found.shortfall
        said = None if need is None else goal
        why = plan_summary(found.candidates, found.total_tokens_freed, said, found.shortfall)
        return replace(found, reason=why)

    def _settled(self, plan: PruningPlan, target_tokens: int | None = None) -> Chosen:
        """Return a plan without what would stay all the same, and what it frees of the view."""
        heap, stubs = self.heap, plan.stubs
        leaving = {c.segment_id: c for c in plan.candidates if heap.is_working(c.segment_id)}
        kept: dict[str, str] = {}
        while stays := self._staying(leaving, stubs):
            kept.update(stays)
            leaving = {i: c for i, c in leaving.items() if i not in stays}
        chosen = [c for c in plan.candidates if c.segment_id not in kept]
        tokens = self._accounting.tokens
        after = self._thinking.strip_edited(self._marked(leaving, stubs))
        freed = sum(map(tokens, self._view.messages)) - sum(map(tokens, after))
        made = assemble(
            chosen,
            target_tokens=target_tokens,
            proposals=plan.proposals,
            scope=plan.scope,
            tokens_before=self.tokens,
            heap_version=plan.heap_version,
            stubs={i: text for i, text in stubs.items() if i not in kept},
        )
        short = max(0, (target_tokens or 0) - freed)
        return Chosen(plan=replace(made, total_tokens_freed=freed, shortfall=short), kept=kept)

    def _staying(
        self, leaving: Mapping[str, PruningCandidate], stubs: Mapping[str, str]
    ) -> dict[str, str]:
        """Return which of the segments that should leave the view would show all the same, and why."""
        left = set(self._left_out(self._view_without(leaving, stubs), leaving))
        return {i: why for i, c in leaving.items() if i not in left and (why := self._why_shown(c))}

    def _why_shown(self, candidate: PruningCandidate) -> str:
        segment = self.heap.get(candidate.segment_id)
        if segment.part not in _COMPRESSIBLE:
            return f"a {segment.part} that its message needs"
        # A marker takes the place of a text that is deleted, however short that is.
        if candidate.action == "delete":
            return ""
        return "the view would be invalid without it, and a stub in its place no shorter"

    def _marked(
        self, leaving: Mapping[str, PruningCandidate], stubs: Mapping[str, str]
    ) -> list[Message]:
        """Return the view without segments, with the markers of those that are deleted."""
        doomed = {i for i, candidate in leaving.items() if candidate.action == "delete"}
        new = self._view_without(leaving, stubs)
        for n, message in enumerate(new if doomed else ()):
            for place, segment_id in enumerate(self._segmenter.segment_ids(message.message_id)):
                if segment_id in doomed:
                    new[n] = _with_text(new[n], place, DELETED)
        return new

    def choose(
        self,
        segments: Sequence[ContextSegment],
        strategy: PruneStrategy,
        *,
        by_query: bool,
        confirm: bool,
    ) -> Chosen:
        """Return the plan that lets these segments go, with all that they are bonded to and can go too.

        What a query found stays if any root rule holds it; what was named by id only if a firm one does.
        """
        analysis = self.engine.analyze(self.state())
        leaving: dict[str, ContextSegment] = {}
        kept: dict[str, str] = {}
        for segment in segments:
            bond = self._together(segment)
            why = _why_kept(analysis, bond, by_query=by_query)
            if segment.tier == "stashed" and strategy != "delete":
                why = "stashed already"
            if why:
                kept[segment.segment_id] = why
            else:
                leaving.update((member.segment_id, member) for member in bond)
        chosen = [
            _asked_for(analysis, s, self._action(analysis, s, strategy, confirm=confirm))
            for s in leaving.values()
        ]
        found = self._settled(self._assembled(chosen))
        return Chosen(plan=found.plan, kept={**kept, **found.kept})

    def deleting(self, plan: PruningPlan) -> Chosen:
        """Return a plan that deletes for good what it would have stashed, as far as that can be."""
        changed = [
            replace(c, action="delete") if c.action == "stash" else c for c in plan.candidates
        ]
        return self._settled(replace(self._assembled(changed), stubs=plan.stubs))

    def _together(self, segment: ContextSegment) -> list[ContextSegment]:
        """A segment with what goes when it goes: its bond, or the stub that would recall nothing."""
        heap = self.heap
        if segment.tier == "working":
            return [heap.get(member) for member in heap.bonds.group(segment)]
        sources = (heap.get(source) for source in heap.backrefs.get(segment.segment_id, ()))
        return [segment, *(s for s in sources if s.derived_from == segment.segment_id)]

    def _action(
        self,
        analysis: Analysis,
        segment: ContextSegment,
        strategy: PruneStrategy,
        *,
        confirm: bool,
    ) -> Action:
        """`auto` deletes only a confirmed, unreachable copy of what stays; all else it stashes."""
        if strategy != "auto":
            return strategy
        if not confirm or segment.superseded_how != "identical":
            return "stash"
        newer = self.heap.peek(segment.superseded_by or "")
        has_copy = newer is not None and newer.tier == "working"
        return "delete" if has_copy and not analysis.is_reachable(segment.segment_id) else "stash"

    def _assembled(self, chosen: list[PruningCandidate]) -> PruningPlan:
        return assemble(
            chosen,
            target_tokens=None,
            tokens_before=self.tokens,
            heap_version=self.heap.version,
        )

    # -- what leaves --------------------------------------------------------------------------------

    def apply(self, plan: PruningPlan, trigger: str) -> Collection:
        """Carry out a plan, and say what it did: whole groups of messages leave, parts of them are stubs.

        A segment stays if the view would be invalid without it. What is deleted is stashed first, then
        gone for good, with every copy of its text that the session keeps.

        Raises:
            StalePlanError: the heap has changed since the plan was made.
            InputError: what is deleted is pinned, or its message is invalid without it.
        """
        doomed = plan.delete_segments
        working = [c for c in plan.candidates if self.heap.is_working(c.segment_id)]
        check_plan(replace(plan, candidates=working), self.heap)
        before = {s.segment_id for s in self.heap.working()}
        tokens = self.tokens
        if working:
            self._impose(plan, {c.segment_id: c for c in working}, trigger)
        # A stub ends as it leaves, and one that was deleted goes with what it stands for.
        if known := [i for i in doomed if i in self.heap]:
            self._session.delete(known, confirm=True)
        replaced = {
            str(s.derived_from): s.segment_id
            for s in self.heap.working()
            if s.segment_id not in before and s.derived_from is not None
        }
        left = [i for i in before if not self.heap.is_working(i)]
        return Collection(
            plan=plan,
            tokens_before=tokens,
            tokens_after=self.tokens,
            stashed=[i for i in _in_order(plan, left) if i not in doomed],
            deleted=[i for i in doomed if i not in self.heap],
            replaced=replaced,
            tenured=[],
        )

    def _impose(
        self, plan: PruningPlan, leaving: Mapping[str, PruningCandidate], trigger: str
    ) -> None:
        new = self._view_without(leaving, plan.stubs)
        if new == self._view.messages:
            return
        left = self._left_out(new, leaving)
        message_of = {i: self.heap.get(i).message_id for i in leaving}
        self._parts.collector.impose(
            self._thinking.strip_edited(new),
            self._who,
            reason=GCTriggerReason.CONTEXT_LIMIT
            if trigger == "hard limit"
            else GCTriggerReason.MANUAL,
            scope=None if plan.scope == "step" else plan.scope,
            details={
                "trigger": trigger,
                "at": self._options.clock().isoformat(),
                "stashed": [i for i in left if leaving[i].action != "delete"],
                "deleted": plan.delete_segments,
                "reasons": {i: leaving[i].reason for i in left},
            },
            evidence={
                str(message_of[i]): c.evidence
                for i, c in leaving.items()
                if message_of[i] is not None
            },
        )

    def _view_without(
        self, leaving: Mapping[str, PruningCandidate], stubs: Mapping[str, str]
    ) -> list[Message]:
        """Return the view without segments: without the groups that leave whole, with stubs in the others."""
        view, ids_of = self._view, self._segmenter.segment_ids
        gone: list[tuple[int, ...]] = []
        edited: dict[int, Message] = {}
        for group in view.groups_of(view.messages):
            members = [view.messages[place] for place in group]
            ids = [i for message in members for i in ids_of(message.message_id)]
            if ids and leaving.keys() >= set(ids) and not any(i in stubs for i in ids):
                gone.append(group)
                continue
            for place, message in zip(group, members, strict=True):
                edited[place] = self._with_stubs(message, leaving, stubs)
        return self._valid(gone, edited)

    def _left_out(self, new: Sequence[Message], leaving: Iterable[str]) -> list[str]:
        """Return which of the segments that should leave a new view does not show."""
        texts = {message.message_id: [part.text for part in message.parts] for message in new}

        def is_shown(segment: ContextSegment) -> bool:
            now = texts.get(segment.message_id or "", [])
            ids = self._segmenter.segment_ids(segment.message_id or "")
            return bool(now) and now[ids.index(segment.segment_id)] == segment.text

        return [i for i in leaving if not is_shown(self.heap.get(i))]

    def _valid(self, gone: list[tuple[int, ...]], edited: Mapping[int, Message]) -> list[Message]:
        """Return the view without groups; where a provider would refuse that, the oldest of them stay."""
        messages = self._view.messages
        while True:
            out = {place for group in gone for place in group}
            new = [edited.get(n, m) for n, m in enumerate(messages) if n not in out]
            if not gone or not check(new, complete=False):
                return new
            gone = gone[1:]

    def _with_stubs(
        self, message: Message, leaving: Mapping[str, PruningCandidate], stubs: Mapping[str, str]
    ) -> Message:
        shown = message
        for place, segment_id in enumerate(self._segmenter.segment_ids(message.message_id)):
            candidate = leaving.get(segment_id)
            if candidate is None or candidate.action == "delete":
                continue
            text = stubs.get(segment_id) or self._tombstone(segment_id, candidate.reason)
            size = self.heap.get(segment_id).tokens or 0
            if segment_id in stubs or self.heap.count(text) < size:
                shown = _with_text(shown, place, text)
        return shown

    def _tombstone(self, segment_id: str, why: str) -> str:
        recall = self._options.recall_call
        handle = "" if recall is None else self._stash.recall_handle(segment_id)
        segment = self.heap.get(segment_id)
        return long_tombstone(segment, why, handle=handle, recall=recall or "")

    # -- what leaves by itself ----------------------------------------------------------------------

    def collect_if_due(self) -> Collection | None:
        """Do the bounded bit of collecting that follows an arrival; all of it at the hard limit."""
        state, config = self._state, self._options.config
        if not config.auto_trigger:
            return None
        breaker = state.thrashing
        if self.tokens >= self.context_limit * config.hard_limit_percent / 100:
            done: Collection | None = self._make_room(breaker)
        elif breaker.is_paused(state.requests):
            return None
        else:
            plan = self.engine.plan_step(self.state())
            done = None if plan is None else self.apply(plan, "soft limit")
        return done if done is not None and (done.stashed or done.deleted) else None

    def _make_room(self, breaker: ThrashBreaker) -> Collection:
        """Collect to the usual target; deeper, when collections would follow each other otherwise."""
        limit, percent = self.context_limit, self._options.config.target_percent
        target = int(limit * percent / 100 * breaker.take_depth())
        done = self.apply(self.plan(target), "hard limit")
        breaker.note_room(self._state.requests, done.tokens_freed / limit)
        return done

    # -- what is summarised, and what comes back ----------------------------------------------------

    def check_compressible(self, segments: Iterable[ContextSegment]) -> None:
        """Check that a summary can take the place of segments.

        Raises:
            InputError: one is pinned, not in the working tier, or not plain text.
        """
        for segment in segments:
            if segment.pinned:
                raise _refused(segment, "is pinned", "context_gc_unpin it first")
            if segment.tier != "working":
                raise _refused(segment, "is stashed", "context_recall it first")
            if segment.part not in _COMPRESSIBLE:
                raise _refused(segment, f"is a {segment.part}", "only text can be summarised")

    def compress(self, segment_ids: Sequence[str], summary: str) -> ContextSegment:
        """Show a summary in the place of the first of these segments; all of them are stashed behind it.

        Raises:
            InputError: one of them cannot be replaced.
            MessageError: the summary holds a likely key, and the configuration refuses those.
        """
        self._parts.intake.refuse_keys([text_message("user", summary, self._format, "")])
        segments = [self.heap.get(segment_id) for segment_id in segment_ids]
        self.check_compressible(segments)
        first, ids_of = segments[0], self._segmenter.segment_ids
        known = set(ids_of(str(first.message_id)))
        behind = dict.fromkeys(i for segment in segments for i in self.behind(segment))
        asked = Evidence(kind="asked", how="summarised")
        now = self._options.clock()
        chosen = [candidate_for(s, now, 0.0, action="evacuate", evidence=asked) for s in segments]
        plan = replace(self._assembled(chosen), stubs={first.segment_id: summary})
        self._impose(plan, {c.segment_id: c for c in plan.candidates}, "compress")
        made = [self.heap.get(i) for i in ids_of(str(first.message_id)) if i not in known]
        stand_in = next((s for s in made if s.text == summary), None)
        if stand_in is None:
            raise _refused(first, "cannot be replaced in its message", "stash it instead")
        others = [i for i in behind if i in self.heap and not self.heap.is_working(i)]
        references = tuple(i for i in others if i != stand_in.derived_from)
        self.heap.annotate(stand_in.segment_id, type="summary", references=references)
        self._archive.note_unsaved([stand_in.segment_id])
        return stand_in

    def behind(self, segment: ContextSegment) -> list[str]:
        """Return the originals behind a summary or a stub; of any other segment, the segment itself."""
        found = [i for i in (segment.derived_from, *segment.references) if i is not None]
        stashed = [i for i in found if i in self.heap and not self.heap.is_working(i)]
        return stashed if segment.derived_from and stashed else [segment.segment_id]

    def bring_back(self, segment: ContextSegment) -> bool:
        """Bring a stashed segment back into its place in the view; return whether it is there now.

        It stays stashed if the view would be invalid with it or would not fit the window.
        """
        return self._fits(segment) and self._show_again(segment)

    def _fits(self, segment: ContextSegment) -> bool:
        """Return whether the window has room for a segment, with what comes back along with it."""
        originals, tokens = self._view.originals, self._accounting.tokens
        left = originals.get(segment.message_id or "")
        ids = (left.together or (left.message.message_id,)) if left else ()
        back = [originals[i].message for i in ids if i in originals]
        shown = filter(None, (self._view.get(message.message_id) for message in back))
        more = sum(map(tokens, back)) - sum(map(tokens, shown))
        return self.tokens + more <= self.context_limit

    def _show_again(self, segment: ContextSegment) -> bool:
        if segment.tier == "working":
            return False
        try:
            self._session.recall(segment.segment_id)
        except PlanError:
            return False
        return self.heap.is_working(segment.segment_id)

    def text_of(self, segment: ContextSegment) -> str:
        """Return the text of a segment; of an image or the like its own JSON."""
        if segment.part != "media":
            return segment.text
        left = self._view.originals.get(segment.message_id or "")
        message = left.message if left else self._view.get(segment.message_id or "")
        name = segment.segment_id
        ids = left.segment_ids if left else self._segmenter.segment_ids(name.rpartition(".")[0])
        return _whole_text(message, ids.index(name)) if message and name in ids else segment.text

    def restore_tiers(self, working: Iterable[str]) -> None:
        """Show exactly these segments again, as far as the view is valid with them; stash all others."""
        wanted = {i for i in working if i in self.heap}
        for segment_id in sorted(wanted, key=lambda i: self.heap.get(i).position):
            self._show_again(self.heap.get(segment_id))
        now, asked = self._options.clock(), Evidence(kind="asked", how="restored")
        others = [s for s in self.heap.working() if s.segment_id not in wanted]
        chosen = [candidate_for(s, now, 0.0, evidence=asked) for s in others]
        self._impose(self._assembled(chosen), {c.segment_id: c for c in chosen}, "restore")


def _role(segment: ContextSegment) -> str:
    """Return who says it: the agent its own words, the user all else; nothing becomes system text."""
    said = segment.role == "assistant" and segment.part in (None, "text")
    return "assistant" if said else "user"


def _broken(messages: Sequence[Message]) -> set[tuple[str, str]]:
    return {(each.promise, each.message_id) for each in check(messages, complete=False)}


def _whole_text(message: Message, place: int) -> str:
    """What is kept of a part: its text; of an image or the like its own JSON, if that is not too long."""
    part = message.parts[place]
    if part.text and part.kind != "media":
        return part.text
    value: Any = message.data
    for step in part.path:
        value = value[step]
    raw = msgspec.json.encode(value).decode()
    return raw if len(raw) <= _MOST_TEXT else part.text


def _with_text(message: Message, place: int, text: str) -> Message:
    """Return a message with another text in one part; the message itself if the part has none."""
    try:
        return replace_text(message, place, text, keep_media=False)
    except MessageError:
        return message


def _in_order(plan: PruningPlan, ids: Iterable[str]) -> list[str]:
    """Return ids in the order of a plan, then the others."""
    left = set(ids)
    named = [c.segment_id for c in plan.candidates if c.segment_id in left]
    return [*named, *sorted(left.difference(named))]


def _why_kept(analysis: Analysis, bond: Sequence[ContextSegment], *, by_query: bool) -> str:
    """The first reason that holds one of these; empty when none does."""
    for segment in bond:
        if segment.pinned:
            return "pinned: unpin it first"
        for reason in analysis.roots.why(segment.segment_id):
            if by_query or reason in FIRM:
                return reason
    return ""


def _asked_for(analysis: Analysis, segment: ContextSegment, action: Action) -> PruningCandidate:
    return candidate_for(
        segment,
        analysis.state.now,
        analysis.scores.get(segment.segment_id, 0.0),
        action=action,
        reachable=analysis.is_reachable(segment.segment_id),
        freed=(segment.tokens or 0) if segment.tier == "working" else 0,
        evidence=Evidence(kind="asked"),
    )


def _refused(segment: ContextSegment, why: str, hint: str) -> InputError:
    return InputError(f"'{segment.segment_id}' {why}", hint=hint, field="segment_ids")
