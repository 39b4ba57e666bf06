"""Room: making room in a full window; one cover over all results decides which lines stay.

What is said by people and agents stays, and the newest exchange. Tool results leave stubs with those
of their lines that hold most of what is needed again and that nothing else in the view holds. When
what stays leaves too little room for that, the oldest groups dissolve: they leave, and a digest keeps
their handles and their best lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple

import msgspec

from ctxgc.collector.calls import is_code, unread_recalls
from ctxgc.collector.digest import (
    DigestEntry,
    digest_of,
    handle_of,
    handles_in,
    is_handle,
    read_digest,
    write_digest,
)
from ctxgc.collector.host import call_that_recalls
from ctxgc.collector.liveness import WORK_RULES, Analysis, is_replaced, superseding
from ctxgc.collector.presets import WindowConstants, larger, without_recall
from ctxgc.collector.priorities import Priority, Ranked, rank_heap
from ctxgc.collector.run import OLD_NOTICE, CollectionRun
from ctxgc.collector.worth import Cover, Passage, Pick, Worth
from ctxgc.core import (
    ContextSegment,
    Evidence,
    Message,
    Part,
    Text,
    is_tombstone,
    mask_secrets,
    short_tombstone,
)
from ctxgc.errors import MessageError
from ctxgc.wire import replace_text

# -- The scene of a window collection: what is shown, and what of it may be touched


NEWEST = 2
ASKED = 3
HEAD_TOKENS = 28
"""What the first line of a stub takes."""

Group = tuple[int, ...]


class ShownPart(msgspec.Struct, frozen=True, gc=False):
    """A part in the view: the place of its message, its number there, its segment, and what it says."""

    place: int
    number: int
    part: Part
    segment: ContextSegment
    text: Text


class Result:
    """A tool result that may shrink, and the part of the view that it is."""

    __slots__ = ("passage", "shown")

    def __init__(self, shown: ShownPart, passage: Passage) -> None:
        self.shown = shown
        self.passage = passage

    @property
    def tokens(self) -> int:
        """What it has now."""
        return self.shown.segment.tokens or 0

    @property
    def place(self) -> tuple[int, int]:
        """The place of its message, and its number there."""
        return self.shown.place, self.shown.number

    @property
    def is_stub(self) -> bool:
        """Whether it shrank before."""
        return is_tombstone(self.shown.part.text)


SUPERSEDED, UNREACHABLE, REACHABLE = range(3)


class Standing(NamedTuple):
    """Where a group is in the order of leaving: the smallest leaves first.

    Recent turns leave last of all. Then it goes by liveness (`stage`); in the danger and critical zones by
    S4's priority; then by worth per token, and by age. In a chat what is said leaves after results.
    """

    is_recent: bool
    stage: int
    priority: int
    is_talk: bool
    worth: float
    place: int


class Scene:
    """What one collection finds."""

    def __init__(self, run: CollectionRun, analysis: Analysis, how: WindowConstants) -> None:
        self.run = run
        self.how = how
        self.analysis = analysis
        self._standings: dict[Group, Standing] = {}
        self._values: dict[str, dict[int, int]] = {}
        run.host.texts.keep([message.message_id for message in run.history])

    @cached_property
    def parts(self) -> list[ShownPart]:
        """Every part of the view but those of notices."""
        host, by_id = self.run.host, self.analysis.state.heap.segments
        segment_ids, text_of = host.segment_ids, host.texts.of
        found: list[ShownPart] = []
        for place, message in enumerate(self.run.history):
            if message.origin == "gc_notice":
                continue
            message_id = message.message_id
            both = zip(message.parts, segment_ids(message_id), strict=True)
            for number, (part, segment_id) in enumerate(both):
                text = text_of(message_id, number, part)
                found.append(ShownPart(place, number, part, by_id[segment_id], text))
        return found

    @cached_property
    def fixed(self) -> set[int]:
        """The places of the newest messages with their groups, and of whatever a root rule names.

        But not of results that must shrink, because the window would not hold what is fixed otherwise.
        """
        run, roots = self.run, self.analysis.roots
        fixed = {p for group in run.groups if group[-1] >= self._newest for p in group}
        # What is only in work yields, as what else is reachable does, where room must be made.
        firm = {i for i in roots if not WORK_RULES.issuperset(roots.why(i))}
        # Who asks for a target gets the same whatever the zone is, and so whether one collected before.
        if not run.is_forced:
            firm |= {i for i, rank in self._ranks.items() if rank.priority is Priority.ALWAYS_KEEP}
        fixed.update([s.place for s in self.parts if s.segment.segment_id in firm])
        held = run.untouchable
        untouchable = {p for p, m in enumerate(run.history) if m.message_id in held}
        limit = run.usage.get("context_limit", 0)
        if limit and self.size((*fixed.union(untouchable),)) > self.how.tight_share * limit:
            fixed -= {s.place for s in self.parts if self._can_shrink(s)}
        return fixed | untouchable

    @cached_property
    def _newest(self) -> int:
        """The place from which on messages are the newest."""
        return len(self.run.history) - min(NEWEST, self.run.config.recent_messages)

    @cached_property
    def _recalled(self) -> set[str]:
        """The calls whose answers the model asked for by a handle and has not read yet."""
        return unread_recalls(self.run.history)

    @cached_property
    def _by_place(self) -> dict[int, list[ShownPart]]:
        found: dict[int, list[ShownPart]] = {}
        for shown in self.parts:
            found.setdefault(shown.place, []).append(shown)
        return found

    def parts_of(self, group: Group) -> list[ShownPart]:
        """Return the parts of a group."""
        return [shown for place in group for shown in self._by_place.get(place, ())]

    def size(self, group: Group) -> int:
        """Return the tokens of a group."""
        return sum(self.run.draft.size(message_id) for message_id in self.run.ids(group))

    def results(self) -> list[Result]:
        """Return the tool results that may shrink, oldest first."""
        fixed, can_shrink = self.fixed, self._can_shrink
        loose = [s for s in self.parts if s.part.kind == "tool_result" and s.place not in fixed]
        return [Result(shown, self._passage(shown)) for shown in loose if can_shrink(shown)]

    def loose_groups(self) -> list[Group]:
        """Return the groups that may leave, in the order of leaving."""
        run = self.run
        loose = [
            group
            for group in run.groups
            if self.fixed.isdisjoint(group)
            and not any(message_id in run.roots for message_id in run.ids(group))
            and run.history[group[0]].origin != "gc_notice"
        ]
        return sorted(loose, key=self.standing)

    def loose_talk(self) -> list[Group]:
        """Return those that hold no tool result, where most groups hold none; else nothing."""
        talk = {group for group in self.run.groups if not self._results_of(group)}
        if 2 * len(talk) <= len(self.run.groups):
            return []
        return [group for group in self.loose_groups() if group in talk]

    def _results_of(self, group: Group) -> list[ShownPart]:
        return [shown for shown in self.parts_of(group) if shown.part.kind == "tool_result"]

    def standing(self, group: Group) -> Standing:
        """Return where a group is in the order of leaving."""
        run, standing = self.run, self._standings.get(group)
        if standing is None:
            parts = self.parts_of(group)
            results = self._results_of(group)
            is_talk = not results and self._is_chat
            standing = self._standings[group] = Standing(
                is_recent=any(message_id in run.protected for message_id in run.ids(group)),
                stage=max(map(self.stage, results or parts), default=UNREACHABLE),
                priority=-self._priority(group),
                is_talk=is_talk,
                worth=self._worth_of_group(group, is_talk=is_talk),
                place=group[0],
            )
        return standing

    def stage(self, shown: ShownPart) -> int:
        """Return how alive a part is: something newer took its place, no root reaches it, or one does."""
        if self.analysis.is_reachable(shown.segment.segment_id):
            return REACHABLE
        return SUPERSEDED if self._is_dead(shown) else UNREACHABLE

    def _is_replaced(self, segment: ContextSegment) -> bool:
        return is_replaced(segment, self.analysis.state.heap)

    def evidence(self, shown: ShownPart, need: int, stage: int) -> Evidence:
        """Return why a result shrinks in a collection that had to go as far as a stage."""
        own = self.stage(shown)
        if own == SUPERSEDED and stage <= UNREACHABLE:
            return self._superseding(shown.segment)
        if own == UNREACHABLE and stage <= UNREACHABLE:
            return self.analysis.evidence(shown.segment, self.run.host.request_of)
        return Evidence(kind="least_worth", tokens=need)

    def group_evidence(self, group: Group, need: int, last: Standing, place: int) -> Evidence:
        """Return why a message of a group leaves; `last` is the group that left last of all.

        Its state is the reason if it would have stayed without it, else its worth or its age.
        """
        own = self.standing(group)
        stays_if_live = (own.is_recent, REACHABLE, *own[2:]) > tuple(last)
        if own.stage == SUPERSEDED and stays_if_live:
            shown = (*self.parts_of((place,)), *self.parts_of(group))
            stale = next(s for s in shown if self._is_replaced(s.segment))
            return self._superseding(stale.segment)
        if own.stage <= UNREACHABLE and stays_if_live:
            return self._unreachable(group, place)
        if own.priority == -Priority.ALWAYS_PRUNE:
            return Evidence(kind="priority", how=self._rule(group))
        return Evidence(kind="oldest" if own.is_talk else "least_worth", tokens=need)

    def _unreachable(self, group: Group, place: int) -> Evidence:
        """Return the evidence that no root reaches a group: with the rule that held a result of it last.

        What is said was one of the recent messages once, and each message since made it less so.
        """
        said = [self.analysis.evidence(s.segment) for s in self.parts_of(group)]
        ruled = next((e for e in said if e.kind == "unreachable" and e.rule), None)
        recent = place + self.analysis.state.knobs.recent_messages
        if ruled is not None or recent >= len(self.run.history):
            return ruled or Evidence(kind="unreachable")
        since = self.run.host.request_of(self.run.history[recent].message_id)
        passed = 0 if since is None else max(0, self.analysis.state.request - since)
        return Evidence(kind="unreachable", rule="recent message", requests=passed)

    def _superseding(self, segment: ContextSegment) -> Evidence:
        find, request_of = self.analysis.state.heap.peek, self.run.host.request_of
        return superseding(segment, find, request_of)

    @cached_property
    def _is_chat(self) -> bool:
        """Whether people and agents mostly talk: what they say then leaves oldest first, as it was said."""
        results = {s.place for s in self.parts if s.part.kind == "tool_result"}
        return 2 * len(results) < len({s.place for s in self.parts})

    def _priority(self, group: Group) -> int:
        """The kindest of S4's priorities in a group; they rank in the danger and critical zones only."""
        ranks = [self._ranks[s.segment.segment_id] for s in self.parts_of(group) if self._ranks]
        return min([rank.priority for rank in ranks], default=0)

    def _rule(self, group: Group) -> str:
        return next(self._ranks[s.segment.segment_id].rule for s in self.parts_of(group))

    @cached_property
    def _ranks(self) -> Mapping[str, Ranked]:
        if self.run.usage.get("zone") not in ("danger", "critical"):
            return {}
        return rank_heap(self.analysis.state, self.run.config.matrix)

    def _worth_of_group(self, group: Group, *, is_talk: bool) -> float:
        """The worth per token of what a group alone holds, or the keep_score of a chosen profile.

        A talk has its order: it leaves oldest first.
        """
        if is_talk:
            return 0.0
        if self.run.config.score_profile != "default":
            ids = [s.segment.segment_id for s in self.parts_of(group)]
            return max([self.analysis.scores.get(i, 0.0) for i in ids], default=0.0)
        alone = sum(self._view_worth.of(t) for t in self._things(group) if self._holders[t] == 1)
        values = sum(sum(self.values(shown).values()) for shown in self.parts_of(group))
        return (alone + values) / max(1, self.size(group))

    def values(self, shown: ShownPart) -> dict[int, int]:
        """Return what the lines of a part are worth for the values that they say; code has none."""
        path = shown.segment.file_path
        if shown.segment.type == "code" and (path is None or is_code(path)):
            return {}
        known = self._values.get(shown.segment.segment_id)
        if known is None:
            known = self._view_worth.of_values(shown.text, shown.place, self._asked)
            self._values[shown.segment.segment_id] = known
        return known

    def group_values(self, group: Group) -> dict[int, int]:
        """Return the same for the lines of a whole group."""
        found: dict[int, int] = {}
        first = 0
        for shown in self.parts_of(group):
            found |= {first + line: worth for line, worth in self.values(shown).items()}
            first += len(shown.text.lines)
        return found

    def old_values(self, text: Text) -> dict[int, int]:
        """Return the same for the lines of an earlier digest."""
        return self._view_worth.of_values(text, -1, self._asked)

    @cached_property
    def _asked(self) -> frozenset[str]:
        """The names and the longer words in the last requests of the user."""
        history = self.run.history
        places = [n for n, m in enumerate(history) if m.role == "user" and not m.results()]
        shown = [s for place in places[-ASKED:] for s in self.parts_of((place,))]
        return frozenset[str]().union(*(s.text.names | s.text.words for s in shown))

    def _things(self, group: Group) -> frozenset[str]:
        return frozenset[str]().union(*(shown.text.things for shown in self.parts_of(group)))

    @cached_property
    def _holders(self) -> Counter[str]:
        """How many groups hold each thing."""
        return Counter(thing for group in self.run.groups for thing in self._things(group))

    @cached_property
    def _view_worth(self) -> Worth:
        return self.worth([], range(len(self.run.history)))

    def handle(self, group: Group) -> str | None:
        """Return what brings a group back."""
        return handle_of(shown.segment for shown in self.parts_of(group))

    def last_number(self, group: Group) -> int | None:
        """Return the number of the last part of a group whose parts were numbered one after the other."""
        ids = [s.segment.derived_from or s.segment.segment_id for s in self.parts_of(group)]
        numbers = [int(i.removeprefix("s-")) for i in ids if is_handle(i)]
        if len(numbers) != len(ids) or numbers != list(range(numbers[0], numbers[0] + len(ids))):
            return None
        return numbers[-1]

    def group_text(self, group: Group) -> Text:
        """Return all that a group says."""
        return Text.joined(shown.text for shown in self.parts_of(group))

    def worth(self, older: list[Text], places: Collection[int]) -> Worth:
        """Return what is worth how much that these messages hold, and `older` texts in front of all."""
        worth = Worth(len(self.run.history), self.how)
        for text in older:
            worth.rate_lines(text.line_keys, self.how.digest_line)
        # They were chosen once, and who said them left: without this the best would be given up first.
        worth.see(-1, [text.things for text in older], by_agent=True)
        for place in sorted(places):
            shown = self.parts_of((place,))
            for each in shown:
                worth.rate_lines(each.text.line_keys, self._line_worth(each))
                if ghost := self.ghost(each):
                    worth.favour(each.text.things, ghost)
            by_agent = self.run.history[place].role == "assistant"
            worth.see(place, [each.text.things for each in shown], by_agent=by_agent)
        return worth

    def ghost(self, shown: ShownPart) -> float:
        """Return how strong the ghost of what a result shows is."""
        is_result = shown.part.kind == "tool_result"
        return self.analysis.state.recall_weight(shown.segment) if is_result else 0.0

    def _is_dead(self, shown: ShownPart) -> bool:
        """Tell whether something newer says the same, and nothing alike was recalled since."""
        return self._is_replaced(shown.segment) and not self.ghost(shown)

    def _passage(self, shown: ShownPart) -> Passage:
        config, segment = self.run.config, shown.segment
        most = config.evacuate_keep_percent / 100
        if self.run.host.recall_call is None:
            most = larger(most)
        return Passage(
            shown.text,
            tokens=segment.tokens or 0,
            most=1.0 if shown.place >= self._newest else most,
            names=config.tombstone_names_percent / 100,
            is_dead=self._is_dead(shown),
        )

    def _can_shrink(self, shown: ShownPart) -> bool:
        part, segment = shown.part, shown.segment
        if part.kind != "tool_result" or part.server_side or part.call_id in self._recalled:
            return False
        if is_tombstone(part.text):
            return segment.derived_from is not None
        return (segment.tokens or 0) >= self.run.config.evacuate_min_tokens

    def _line_worth(self, shown: ShownPart) -> float:
        if shown.part.kind != "tool_result":
            return self.how.agent_line
        return self.how.view_line if shown.segment.type == "code" else self.how.other_line


# -- The digest of a collection: the one that stands in the view, and the one that follows it


ENTRY_TOKENS = 8
MOST_TOLD = 60
BARE_TOKENS = 0.5
"""What a group takes in a digest: the first ones may tell something, the others leave a bare handle."""
NOTE_TOKENS = 32


class DigestDraft:
    """A digest in the making. As long as it is frozen, the old one stays as it is."""

    def __init__(self, scene: Scene, *, allowed: bool) -> None:
        self.entries: list[DigestEntry] = []
        self.is_frozen = True
        self._scene = scene
        self._run = scene.run
        self._allowed = allowed and scene.run.host.recall_call is not None
        self._notices = [m for m in scene.run.old_notices() if handles_in(m.text())]

    @property
    def reserve(self) -> int:
        """The tokens to set aside for the new digest, beyond those of the old one that it replaces."""
        if self.is_frozen:
            return 0
        note = NOTE_TOKENS if self.entries else 0
        told = min(len(self.entries), MOST_TOLD)
        bare = len(self.entries) - told
        return note + ENTRY_TOKENS * told + round(BARE_TOKENS * bare) - self._old_tokens()

    def cost(self, before: int) -> float:
        """Return what one more group takes after so many others; nothing where there is no digest."""
        if not self._allowed:
            return 0
        return ENTRY_TOKENS if before < MOST_TOLD else BARE_TOKENS

    @property
    def is_allowed(self) -> bool:
        """Whether the view may tell of groups that leave."""
        return self._allowed

    @property
    def tokens(self) -> int:
        """The tokens that the digest, as it is now, adds to the draft."""
        text = self._text()
        if text == self._old_text():
            return 0
        return self._run.host.counter.count(text) + NOTE_TOKENS - self._old_tokens()

    def unfreeze(self) -> list[Text]:
        """Let the lines of the old digest compete for the room, and return them."""
        self.is_frozen = False
        self.entries = self._old_entries()
        for entry in self.entries:
            entry.passage.values = self._scene.old_values(entry.passage.text)
        return [entry.passage.text for entry in self.entries]

    def add(self, group: Group) -> None:
        """Take up a group that leaves."""
        handle = self._scene.handle(group)
        if handle is not None and self._allowed:
            text, last = self._scene.group_text(group), self._scene.last_number(group)
            entry = DigestEntry(handle, text, last)
            entry.passage.values = self._scene.group_values(group)
            self.entries.append(entry)

    def take_back(self, group: Group) -> DigestEntry | None:
        """Tell of a group no longer: it stays after all; return what was told."""
        handle = self._scene.handle(group)
        found = next((entry for entry in self.entries if entry.handle == handle), None)
        if found is not None:
            self.entries.remove(found)
        return found

    def held(self) -> frozenset[str]:
        """Return what the old digest holds, while it stays as it is."""
        texts = [Text(m.text()).things for m in self._notices] if self.is_frozen else []
        return frozenset[str]().union(*texts)

    def close(self) -> str:
        """Return the digest of all that left the draft; empty when the old one, or none, says it all."""
        draft, text = self._run.draft, self._text()
        stays = all(draft.get(m.message_id) is not None for m in self._notices)
        if (stays and text == self._old_text()) or self.tokens >= draft.freed:
            return ""
        draft.remove_all([m.message_id for m in self._notices], OLD_NOTICE, "old_notice")
        return text

    def _text(self) -> str:
        entries = self._kept_entries() if self.is_frozen else self.entries
        told = {entry.handle for entry in entries}
        fresh = [handle for handle in self._left() if handle not in told]
        if not self._allowed or (self.is_frozen and not fresh):
            return self._old_text()
        text = write_digest([*entries, *map(DigestEntry, fresh)])
        return mask_secrets(text) if self._run.config.secrets == "mask" else text

    def _left(self) -> list[str]:
        """The handles of all groups that left the draft."""
        run = self._run
        if not run.draft.has_removed:
            return []
        gone = [g for g in run.groups if run.draft.get(run.ids(g)[0]) is None]
        return [handle for handle in map(self._scene.handle, gone) if handle is not None]

    def _old_entries(self) -> list[DigestEntry]:
        """The entries of the digest in the view, but those that are back or deleted."""
        if not self._allowed:
            return []
        heap = self._scene.analysis.state.heap
        found = {e.handle: e for m in self._notices for e in read_digest(m.text())}
        known = [(heap.peek(handle), entry) for handle, entry in found.items()]
        return [entry for segment, entry in known if segment and segment.tier != "working"]

    def _kept_entries(self) -> list[DigestEntry]:
        entries = self._old_entries()
        for entry in entries:
            entry.keep_all()
        return entries

    def _old_text(self) -> str:
        return "\n".join(digest_of(message.text()) for message in self._notices)

    def _old_tokens(self) -> int:
        return sum(self._run.draft.size(message.message_id) for message in self._notices)


# -- The decision written into the draft


def leave(scene: Scene, groups: Sequence[Group], need: int) -> None:
    """Take groups out of the draft, in their order."""
    if not groups:
        return
    last = scene.standing(groups[-1])
    for group in groups:
        for place in group:
            evidence = scene.group_evidence(group, need, last, place)
            scene.run.draft.remove_all(scene.run.ids((place,)), evidence)


def write_stubs(scene: Scene, results: Iterable[Result], need: int, stage: int) -> None:
    """Put stubs into the draft where that makes messages smaller; all results of a message come together."""
    by_place: dict[int, list[Result]] = {}
    for result in results:
        by_place.setdefault(result.shown.place, []).append(result)
    draft = scene.run.draft
    for place, together in by_place.items():
        edited = scene.run.history[place]
        for result in together:
            evidence = scene.evidence(result.shown, need, stage)
            edited = _with_stub(scene, edited, result, evidence)
        if scene.run.host.message_tokens(edited) < draft.size(edited.message_id):
            draft.replace(edited, scene.evidence(together[0].shown, need, stage))


def _with_stub(scene: Scene, message: Message, result: Result, evidence: Evidence) -> Message:
    passage, host = result.passage, scene.run.host
    original = _original(scene, result.shown.segment)
    text = short_tombstone(
        original.tokens or 0,
        evidence.brief,
        recall=call_that_recalls(host, original.segment_id),
        names=passage.names,
        kept=passage.excerpt(),
    )
    if scene.run.config.secrets == "mask":
        text = mask_secrets(text)
    most = min(scene.how.keep_whole * result.tokens, result.tokens - scene.how.least_saving)
    if host.counter.count(text) > most:
        return message
    try:
        return replace_text(message, result.shown.number, text, keep_media=False)
    except MessageError:
        return message


def _original(scene: Scene, segment: ContextSegment) -> ContextSegment:
    original = scene.analysis.state.heap.peek(segment.derived_from or "")
    return segment if original is None else original


# -- Making room in a full window: one cover over all results decides which lines stay


_ROUNDS = 3
HEAD_MARGIN = 14
"""By how much the first line of a stub may be longer than expected."""


class RoomPass:
    """One collection that must make room.

    Args:
        run: the collection.
        analysis: what roots there are and what they reach.
        how: the constants.
        digests: whether the view may tell of messages that leave.
    """

    def __init__(
        self, run: CollectionRun, analysis: Analysis, how: WindowConstants, *, digests: bool
    ) -> None:
        self._run = run
        self._how = how if run.host.recall_call is not None else without_recall(how)
        self._scene = Scene(run, analysis, self._how)
        self.digest = DigestDraft(self._scene, allowed=digests)
        self._target = self._reachable_target()
        self._results: list[Result] = []
        self._dissolved: list[Group] = []
        self._older: list[Text] = []
        self._stage = SUPERSEDED
        self.need = max(0, run.draft.tokens - self._target)
        """The tokens that have to go."""
        self.waits = not run.is_forced and run.draft.tokens <= self._full()
        """Whether what is reachable stays yet: nobody asked for a target, and the window is not full."""

    def make_room(self) -> None:
        """Shrink results and dissolve groups in the draft until the target is met, or nothing helps.

        When the superseded results are enough, only they shrink; else the unreachable ones too; else all, but
        not before the window is full: what is in work stays as long as it fits, and a later collection finds
        more that is dead.
        Stubs of earlier collections, and their digest, stay as they are while there is room for the rest.
        """
        if self._run.draft.tokens <= self._target:
            return
        found = self._scene.results()
        whole = [result for result in found if not result.is_stub]
        for stage, wanted in ((SUPERSEDED, 0.0), (UNREACHABLE, self._wanted_room())):
            self._results = [r for r in whole if self._scene.stage(r.shown) <= stage]
            self._stage = stage
            if self._room() >= wanted:
                break
        else:
            if self.waits and not self._loose_groups():
                return
            if not self.waits:
                self._results, self._stage = whole, REACHABLE
                if self._room() < self._how.freeze_share * self._target:
                    self._results = found
                    self._older = self.digest.unfreeze()
            if self._room() < self._wanted_room():
                self._dissolve()
        self._cover()

    def ghosts(self) -> dict[str, float]:
        """Return the messages that count for more because their like was recalled, and how much."""
        found: dict[str, float] = {}
        for shown in self._scene.parts if self._scene.analysis.state.recalls else ():
            if ghost := self._scene.ghost(shown):
                found[self._run.history[shown.place].message_id] = round(ghost, 2)
        return found

    def _reachable_target(self) -> int:
        """The target, or more: when what must stay is large, the rest still needs some room."""
        run, how = self._run, self._how
        if run.is_forced:
            return run.target
        limit = run.usage.get("context_limit", 0)
        must = self._scene.size(tuple(self._scene.fixed))
        least = min(must + how.least_work_share * run.target, how.tight_share * limit)
        return max(run.target, int(least))

    def _full(self) -> float:
        """The tokens from which on what is in work yields."""
        run = self._run
        share = min(1.0, run.config.hard_limit_percent / 100 + self._how.work_margin)
        return float(share * run.usage.get("context_limit", 0))

    def _room(self) -> float:
        """Return the tokens that are left for lines and names."""
        leaving = sum(map(self._scene.size, self._dissolved))
        shrinking = sum(result.tokens - HEAD_TOKENS for result in self._results)
        staying = self._run.draft.tokens - leaving - shrinking
        return self._target - staying - self.digest.reserve

    def _wanted_room(self) -> float:
        """Return the room that is worth a group; who asks for a target wants no more than that."""
        if self._run.is_forced or not (self._results or self.digest.is_allowed):
            return 0.0
        return self._how.lines_share * self._target

    def _dissolve(self) -> None:
        """Let groups dissolve, in the order of leaving, until there is room enough."""
        if self.digest.is_frozen:
            self._older = self.digest.unfreeze()
        room, wanted = self._room(), self._wanted_room()
        shrinking: dict[int, int] = {}
        for result in self._results:
            place = result.shown.place
            shrinking[place] = shrinking.get(place, 0) + result.tokens - HEAD_TOKENS
        for group in self._loose_groups():
            if room >= wanted:
                break
            size = self._scene.size(group)
            won = size - sum(shrinking.get(place, 0) for place in group)
            room += won - min(self.digest.cost(len(self._dissolved)), size)
            self._dissolved.append(group)
        for group in sorted(self._dissolved):
            self.digest.add(group)
        gone = self._gone()
        self._results = [result for result in self._results if result.shown.place not in gone]

    def _loose_groups(self) -> list[Group]:
        """The groups that may leave, in their order; while it waits only what is said in a plain chat."""
        if not self.waits:
            return self._scene.loose_groups()
        return self._scene.loose_talk()

    def _gone(self) -> set[int]:
        return {place for group in self._dissolved for place in group}

    def _cover(self) -> None:
        room, names = self._room(), self._how.names_share
        # What is not held by that which stays stands in these messages alone.
        changing = self._gone().union(result.shown.place for result in self._results)
        worth = self._scene.worth(self._older, changing)
        for result in self._results:
            passage = result.passage
            passage.values = {} if passage.is_dead else self._scene.values(result.shown)
        cover = Cover(self._passages(), self._held(), worth.of, worth.least_rate)
        picks = cover.choose((1 - names) * room)
        cover.list_names(names * room)
        if self._run.is_forced:
            self._leave_whole(room)
        else:
            picks = self._give_back(room, picks)
        leave(self._scene, self._dissolved, self.need)
        self._write(self._results)
        self._trim(picks)

    def _give_back(self, room: float, picks: list[Pick]) -> list[Pick]:
        """Let the groups chosen last stay that there is room for after all; return the other picks."""
        spare = room - sum(pick.tokens for pick in picks) - HEAD_TOKENS
        stay: set[int] = set()
        # Handles next to each other take less room than expected, so what is free is measured again.
        stay |= self._take_back(spare)
        for _ in range(_ROUNDS if self._dissolved else 0):
            stay |= self._take_back(self._spare())
        return [pick for pick in picks if id(pick.passage) not in stay]

    def _take_back(self, spare: float) -> set[int]:
        """Let groups stay that fit into some room; return the passages that are told of no longer."""
        stay: set[int] = set()
        while self._dissolved and (size := self._scene.size(self._dissolved[-1])) <= spare:
            entry = self.digest.take_back(self._dissolved.pop())
            if entry is not None:
                spare += entry.passage.tokens
                stay.add(id(entry.passage))
            spare -= size
        return stay

    def _spare(self) -> float:
        """Return the room that is free with the digest as it is now."""
        leaving = sum(map(self._scene.size, self._dissolved))
        shrinking = sum(r.tokens - HEAD_TOKENS - r.passage.tokens for r in self._results)
        now = self._run.draft.tokens - leaving - shrinking + self.digest.tokens
        return self._target - now - HEAD_TOKENS

    def _leave_whole(self, room: float) -> None:
        """Leave those results whole that would win least, as long as the room suffices for them."""
        cost = {id(passage): passage.tokens for passage in self._passages()}
        room -= sum(tokens + HEAD_MARGIN for tokens in cost.values())
        small = sorted(
            [
                (result.tokens - HEAD_TOKENS - cost[id(result.passage)], *result.place, result)
                for result in self._results
                if not result.is_stub
            ],
            key=itemgetter(0, 1, 2),
        )
        whole: set[int] = set()
        for won, _, _, result in small:
            room -= won
            if room < 0:
                break
            whole.add(id(result))
        self._results = [result for result in self._results if id(result) not in whole]

    def _passages(self) -> list[Passage]:
        results = [result.passage for result in self._results]
        return results + [entry.passage for entry in self.digest.entries]

    def _held(self) -> set[str]:
        """What is held by that which stays as it is."""
        changing = {id(result.shown) for result in self._results}
        gone = self._gone()
        staying = [
            shown.text.things
            for shown in self._scene.parts
            if id(shown) not in changing and shown.place not in gone
        ]
        return set(self.digest.held()).union(*staying)

    def _trim(self, picks: list[Pick]) -> None:
        """Give up the lines chosen last, and then all names, while draft and digest are above the target."""
        while (over := self._over()) > 0 and picks:
            changed: set[int] = set()
            while picks and over > 0:
                pick = picks.pop()
                pick.passage.kept.remove(pick.piece)
                over -= pick.tokens
                changed.add(id(pick.passage))
            self._rewrite(changed)
        named = {id(passage) for passage in self._passages() if passage.names}
        if named and self._over() > 0:
            for passage in self._passages():
                passage.names = []
            self._rewrite(named)

    def _rewrite(self, passages: set[int]) -> None:
        places = {r.shown.place for r in self._results if id(r.passage) in passages}
        self._write([r for r in self._results if r.shown.place in places])

    def _write(self, results: Iterable[Result]) -> None:
        write_stubs(self._scene, results, self.need, self._stage)

    def _over(self) -> float:
        return self._run.draft.tokens + self.digest.tokens - self._target

    def drop_groups(self) -> bool:
        """Take whole groups out while the draft is above its target; tell whether any left."""
        run, scene = self._run, self._scene
        left: list[Group] = []
        before, excess = run.draft.tokens, run.excess
        for group in scene.loose_groups() if excess > 0 else ():
            if excess <= 0:
                break
            if run.draft.get(run.ids(group)[0]) is not None:
                left.append(group)
                excess -= scene.size(group)
        leave(scene, left, self.need)
        return run.draft.tokens < before
