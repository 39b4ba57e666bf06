"""Making room in a full window: one cover over all results decides which lines stay.

What is said by people and agents stays, and the newest exchange. Tool results leave stubs with those
of their lines that hold most of what is needed again and that nothing else in the view holds. When
what stays leaves too little room for that, the oldest groups dissolve: they leave, and a digest keeps
their handles and their best lines.
"""

from __future__ import annotations

from collections.abc import Iterator

from ctxgc.core.analysis import Analysis
from ctxgc.core.message import Message, Part
from ctxgc.core.secrets import mask_secrets
from ctxgc.core.segment import ContextSegment
from ctxgc.core.tombstone import is_tombstone
from ctxgc.errors import MessageError
from ctxgc.strategies.digest import (
    Entry,
    digest_of,
    handles_in,
    is_handle,
    read_digest,
    write_digest,
)
from ctxgc.strategies.stubs import stub
from ctxgc.strategies.window_cover import Cover, Passage, Pick
from ctxgc.strategies.window_text import WindowText, WindowTexts
from ctxgc.strategies.window_worth import AGENT_LINE, OTHER_LINE, VIEW_LINE, Worth
from ctxgc.strategies.workbench import OLD_NOTICE, Workbench
from ctxgc.wire import replace_text

NEWEST = 2
HEAD_TOKENS = 31
ENTRY_TOKENS = 8
NOTE_TOKENS = 32
FREEZE_SHARE = 0.2
LINES_SHARE = 0.3
NAMES_SHARE = 0.06
WORK_SHARE = 0.85
MOST_SHARE = 0.78
LEAST_WORK_SHARE = 0.2
TIGHT_SHARE = 0.92
KEEP_WHOLE = 0.85


class Result:
    """A tool result that may shrink, and the place where it stands."""

    __slots__ = ("is_stub", "part", "passage", "place", "segment")

    def __init__(
        self, place: int, part: int, segment: ContextSegment, passage: Passage, *, is_stub: bool
    ) -> None:
        self.place = place
        self.part = part
        self.segment = segment
        self.passage = passage
        self.is_stub = is_stub

    @property
    def tokens(self) -> int:
        """What it has now."""
        return self.segment.tokens or 0


class Window:
    """One collection that must make room.

    Args:
        bench: the collection.
        analysis: what roots there are and what they reach.
        texts: the readings of earlier collections.
        digests: whether messages that leave may be told of.
    """

    def __init__(
        self, bench: Workbench, analysis: Analysis, texts: WindowTexts, *, digests: bool
    ) -> None:
        self._bench = bench
        self._analysis = analysis
        self._texts = texts
        self._digests = digests and bench.host.recall_call is not None
        self._fixed = self._fixed_places()
        self._target = self._reachable_target()
        self._results: list[Result] = []
        self._dissolved: list[tuple[int, ...]] = []
        self._entries: list[Entry] = []
        self._notices = [m for m in bench.old_notices() if handles_in(m.text())]
        self._old: list[Entry] = []
        self._is_frozen = True

    def make_room(self) -> None:
        """Shrink results and dissolve groups in the draft until the target is met, or nothing helps."""
        if self._bench.draft.tokens <= self._target:
            return
        found = list(self._find_results())
        whole = [result for result in found if not result.is_stub]
        self._results = [result for result in whole if result.passage.is_dead]
        if self._room() < 0:
            self._results = whole
            if self._room() < FREEZE_SHARE * self._target:
                self._results = found
                self._unfreeze()
            if self._room() < self._wanted_room():
                self._dissolve()
        self._cover()

    @property
    def digest_tokens(self) -> int:
        """The tokens that the digest adds to the draft, in place of the old one."""
        text = self._digest()
        if text == self._old_digest():
            return 0
        held = sum(self._bench.draft.size(m.message_id) for m in self._notices)
        return self._bench.host.counter.count(text) + NOTE_TOKENS - held

    def close(self) -> str:
        """Return the digest of all that left the draft; empty when the old one, or none, says it all."""
        bench, text = self._bench, self._digest()
        before = sum(bench.host.message_tokens(message) for message in bench.history)
        now = sum(bench.draft.size(message.message_id) for message in bench.history)
        stays = all(bench.draft.get(m.message_id) is not None for m in self._notices)
        if (stays and text == self._old_digest()) or now + self.digest_tokens >= before:
            return ""
        bench.draft.remove_all([m.message_id for m in self._notices], OLD_NOTICE)
        return text

    def _digest(self) -> str:
        bench = self._bench
        entries = self._entries
        if self._is_frozen:
            entries = self._old_entries()
            for entry in entries:
                entry.keep_all()
        told = {entry.handle for entry in entries}
        gone = [g for g in bench.groups if bench.draft.get(bench.ids(g)[0]) is None]
        left = [g for g in gone if bench.history[g[0]].origin != "gc_notice"]
        fresh = [h for h in map(self._handle, left) if h is not None and h not in told]
        if not self._digests or (self._is_frozen and not fresh):
            return self._old_digest()
        text = write_digest([*entries, *map(Entry, fresh)])
        return mask_secrets(text) if bench.config.secrets == "mask" else text

    def _old_digest(self) -> str:
        return "\n".join(digest_of(message.text()) for message in self._notices)

    # -- what may be touched ------------------------------------------------------------------------

    def _fixed_places(self) -> set[int]:
        """The newest messages with their groups, and whatever a root rule names."""
        bench, roots = self._bench, self._analysis.roots
        count, recent = len(bench.history), min(NEWEST, bench.config.recent_messages)
        newest = range(max(0, count - recent), count)
        fixed = {p for group in bench.groups if any(q in newest for q in group) for p in group}
        for place, message in enumerate(bench.history):
            ids = bench.host.segment_ids(message.message_id)
            if message.message_id in bench.untouchable or any(i in roots for i in ids):
                fixed.add(place)
        return fixed

    def _reachable_target(self) -> int:
        """The target, or more: when what must stay is large, the rest still needs some room."""
        bench = self._bench
        if bench.is_forced:
            return bench.target
        limit = bench.usage.get("context_limit", 0)
        must = sum(bench.draft.size(i) for i in bench.ids(tuple(self._fixed)))
        some = min(must + WORK_SHARE * bench.target, MOST_SHARE * limit)
        little = min(must + LEAST_WORK_SHARE * bench.target, TIGHT_SHARE * limit)
        return max(bench.target, int(some), int(little))

    def _find_results(self) -> Iterator[Result]:
        for place, number, part, segment_id in self._parts():
            segment = self._analysis.state.heap.peek(segment_id)
            if place in self._fixed or segment is None or not self._can_shrink(part, segment):
                continue
            config = self._bench.config
            passage = Passage(
                self._texts.of(segment_id, part),
                tokens=segment.tokens or 0,
                most=config.evacuate_keep_percent / 100,
                names=config.tombstone_names_percent / 100,
                is_dead=segment.superseded_how not in (None, "edited"),
            )
            yield Result(place, number, segment, passage, is_stub=is_tombstone(part.text))

    def _can_shrink(self, part: Part, segment: ContextSegment) -> bool:
        if part.kind != "tool_result" or part.server_side:
            return False
        if is_tombstone(part.text):
            return segment.derived_from is not None
        return (segment.tokens or 0) >= self._bench.config.evacuate_min_tokens

    def _parts(self) -> Iterator[tuple[int, int, Part, str]]:
        """Yield every part that is still shown: its place, its number, itself, its segment."""
        bench = self._bench
        for place, message in enumerate(bench.history):
            if message.origin == "gc_notice" or bench.draft.get(message.message_id) is None:
                continue
            ids = bench.host.segment_ids(message.message_id)
            for number, (part, segment_id) in enumerate(zip(message.parts, ids, strict=True)):
                yield place, number, part, segment_id

    # -- how much room there is ---------------------------------------------------------------------

    def _room(self) -> float:
        """Return the tokens that are left for lines and names."""
        leaving = sum(self._size(group) for group in self._dissolved)
        shrinking = sum(result.tokens - HEAD_TOKENS for result in self._results)
        note = 0
        if not self._is_frozen:
            leaving += sum(self._bench.draft.size(m.message_id) for m in self._notices)
            note = NOTE_TOKENS if self._entries else 0
        entries = ENTRY_TOKENS * len(self._entries)
        return self._target - (self._bench.draft.tokens - leaving - shrinking) - entries - note

    def _wanted_room(self) -> float:
        """How much room is worth a group: some for the lines of results, none if the target is asked for."""
        if self._bench.is_forced:
            return 0.0
        return LINES_SHARE * self._target

    def _size(self, group: tuple[int, ...]) -> int:
        return sum(self._bench.draft.size(i) for i in self._bench.ids(group))

    def _dissolve(self) -> None:
        """Let the oldest groups dissolve, those of the recent turns last, until there is room enough."""
        if self._is_frozen:
            self._unfreeze()
        room, wanted = self._room(), self._wanted_room()
        results: dict[int, int] = {}
        for result in self._results:
            results[result.place] = results.get(result.place, 0) + result.tokens - HEAD_TOKENS
        for group in self._loose_groups():
            if room >= wanted:
                break
            self._dissolved.append(group)
            room += self._size(group) - sum(results.get(p, 0) for p in group) - ENTRY_TOKENS
        gone = {place for group in self._dissolved for place in group}
        self._results = [result for result in self._results if result.place not in gone]
        self._entries += [e for g in self._dissolved if (e := self._entry(g)) is not None]

    def _loose_groups(self) -> Iterator[tuple[int, ...]]:
        bench = self._bench
        loose = [
            group
            for group in bench.groups
            if self._fixed.isdisjoint(group)
            and not any(i in bench.roots for i in bench.ids(group))
            and bench.history[group[0]].origin != "gc_notice"
        ]
        recent = [any(i in bench.protected for i in bench.ids(group)) for group in loose]
        yield from (g for g, is_recent in zip(loose, recent, strict=True) if not is_recent)
        yield from (g for g, is_recent in zip(loose, recent, strict=True) if is_recent)

    # -- the digest ---------------------------------------------------------------------------------

    def _unfreeze(self) -> None:
        """Let the old digest, too, compete for the room."""
        self._is_frozen = False
        self._old = self._old_entries()
        self._entries = list(self._old)

    def _old_entries(self) -> list[Entry]:
        """The entries of the digest in the view, but those of which something is back or deleted."""
        if not self._digests:
            return []
        heap = self._analysis.state.heap
        found = [e for m in self._notices for part in m.parts for e in read_digest(part.text)]
        known = {e.handle: e for e in found}
        return [
            e for h, e in known.items() if (s := heap.peek(h)) is not None and s.tier != "working"
        ]

    def _entry(self, group: tuple[int, ...]) -> Entry | None:
        handle = self._handle(group)
        if handle is None or not self._digests:
            return None
        places = set(group)
        texts = [self._texts.of(i, part) for p, _, part, i in self._parts() if p in places]
        return Entry(handle, WindowText.joined(texts))

    def _handle(self, group: tuple[int, ...]) -> str | None:
        """Return what brings a group back: the id that its first part came in with."""
        for message_id in self._bench.ids(group):
            for segment_id in self._bench.host.segment_ids(message_id):
                segment = self._analysis.state.heap.peek(segment_id)
                handle = segment_id if segment is None else segment.derived_from or segment_id
                if is_handle(handle):
                    return handle
        return None

    # -- the cover ----------------------------------------------------------------------------------

    def _cover(self) -> None:
        room = self._room()
        cover = Cover(self._passages(), self._held(), self._worth().of)
        picks = cover.choose((1 - NAMES_SHARE) * room)
        cover.list_names(NAMES_SHARE * room)
        for group in self._dissolved:
            self._leave(group)
        self._write(set(range(len(self._results))))
        self._trim(picks)

    def _held(self) -> set[str]:
        """What is held by that which stays as it is."""
        shrinking = {(r.place, r.part) for r in self._results}
        gone = {place for group in self._dissolved for place in group}
        held: set[str] = set()
        for place, number, part, segment_id in self._parts():
            if place not in gone and (place, number) not in shrinking:
                held |= self._texts.of(segment_id, part).all
        if self._is_frozen:
            for message in self._notices:
                held |= WindowText(message.text()).all
        return held

    def _worth(self) -> Worth:
        worth, bench, seen = Worth(), self._bench, set[str]()
        by_place: dict[int, list[WindowText]] = {}
        for entry in self._old:
            worth.rate_lines(entry.passage.text.all, VIEW_LINE)
        worth.see(t for entry in self._old for t in entry.passage.text.all)
        for place, _, part, segment_id in self._parts():
            text = self._texts.of(segment_id, part)
            worth.rate_lines(text.all, self._line_worth(part, segment_id))
            by_place.setdefault(place, []).append(text)
            seen.add(segment_id)
        for place, texts in by_place.items():
            things = [thing for text in texts for thing in text.all]
            worth.see(things, by_agent=bench.history[place].role == "assistant")
        self._texts.keep(seen)
        return worth

    def _line_worth(self, part: Part, segment_id: str) -> float:
        if part.kind != "tool_result":
            return AGENT_LINE
        segment = self._analysis.state.heap.peek(segment_id)
        return VIEW_LINE if segment is not None and segment.type == "code" else OTHER_LINE

    # -- writing ------------------------------------------------------------------------------------

    def _leave(self, group: tuple[int, ...]) -> None:
        bench = self._bench
        ids = bench.ids(group)
        segments = [s for i in ids for s in bench.host.segment_ids(i)]
        reachable = any(map(self._analysis.is_reachable, segments))
        bench.draft.remove_all(ids, "low_score" if reachable else "unreachable")

    def _write(self, numbers: set[int]) -> None:
        """Put stubs in the draft for the messages of these results."""
        by_place: dict[int, list[Result]] = {}
        for result in self._results:
            by_place.setdefault(result.place, []).append(result)
        for place in sorted({self._results[number].place for number in numbers}):
            message = self._bench.history[place]
            edited = message
            for result in by_place[place]:
                edited = self._with_stub(edited, result)
            if self._bench.host.message_tokens(edited) < self._bench.draft.size(message.message_id):
                reachable = self._analysis.is_reachable(by_place[place][0].segment.segment_id)
                self._bench.draft.replace(edited, "evacuated" if reachable else "stashed")

    def _with_stub(self, message: Message, result: Result) -> Message:
        passage, host = result.passage, self._bench.host
        original = self._original(result.segment)
        text = stub(
            original, self._why(original), host, names=passage.names, kept=passage.excerpt()
        )
        if self._bench.config.secrets == "mask":
            text = mask_secrets(text)
        if host.counter.count(text) >= KEEP_WHOLE * result.tokens:
            return message
        try:
            return replace_text(message, result.part, text, keep_media=False)
        except MessageError:
            return message

    def _original(self, segment: ContextSegment) -> ContextSegment:
        original = self._analysis.state.heap.peek(segment.derived_from or "")
        return segment if original is None else original

    def _why(self, segment: ContextSegment) -> str:
        if segment.superseded_by is not None:
            return f"superseded, {segment.superseded_how}"
        return "cold"

    def _trim(self, picks: list[Pick]) -> None:
        """Give up names, then the lines chosen last, while draft and digest are above the target."""
        numbers = {id(result.passage): n for n, result in enumerate(self._results)}
        named = [p for p in self._passages() if p.names]
        while (over := self._over()) > 0 and (named or picks):
            changed = {numbers.get(id(passage)) for passage in named}
            for passage in named:
                passage.names = []
            named = []
            while picks and over > 0 and not changed:
                pick = picks.pop()
                pick.passage.kept.remove(pick.piece)
                over -= pick.tokens
            self._write(set(numbers.values()))

    def _over(self) -> float:
        return self._bench.draft.tokens + self.digest_tokens - self._target

    def _passages(self) -> list[Passage]:
        return [r.passage for r in self._results] + [e.passage for e in self._entries]
