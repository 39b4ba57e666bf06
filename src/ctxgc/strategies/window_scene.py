"""The scene of a window collection: what is shown, what of it may be touched, and what it is worth."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from ctxgc.core.analysis import Analysis
from ctxgc.core.message import Part
from ctxgc.core.segment import ContextSegment
from ctxgc.core.tombstone import is_tombstone
from ctxgc.strategies.digest import is_handle
from ctxgc.strategies.window_constants import WindowConstants
from ctxgc.strategies.window_cover import Passage
from ctxgc.strategies.window_text import WindowText, WindowTexts
from ctxgc.strategies.window_worth import Worth
from ctxgc.strategies.workbench import Workbench

NEWEST = 2

Group = tuple[int, ...]


class Shown(NamedTuple):
    """A part in the view: the place of its message, its number there, and its segment."""

    place: int
    number: int
    part: Part
    segment: ContextSegment


class Result:
    """A tool result that may shrink, and the part of the view that it is."""

    __slots__ = ("passage", "shown")

    def __init__(self, shown: Shown, passage: Passage) -> None:
        self.shown = shown
        self.passage = passage

    @property
    def tokens(self) -> int:
        """What it has now."""
        return self.shown.segment.tokens or 0

    @property
    def is_stub(self) -> bool:
        """Whether it shrank before."""
        return is_tombstone(self.shown.part.text)


class Scene:
    """What one collection finds."""

    def __init__(
        self, bench: Workbench, analysis: Analysis, texts: WindowTexts, how: WindowConstants
    ) -> None:
        self.bench = bench
        self.how = how
        self.analysis = analysis
        self._texts = texts
        texts.keep({shown.segment.segment_id for shown in self.parts})

    @cached_property
    def parts(self) -> list[Shown]:
        """Every part of the view but those of notices."""
        return list(self._parts())

    @cached_property
    def fixed(self) -> set[int]:
        """The places of the newest messages with their groups, and of whatever a root rule names."""
        bench, roots = self.bench, self.analysis.roots
        count, recent = len(bench.history), min(NEWEST, bench.config.recent_messages)
        newest = range(max(0, count - recent), count)
        fixed = {p for group in bench.groups if any(q in newest for q in group) for p in group}
        fixed.update(s.place for s in self.parts if s.segment.segment_id in roots)
        held = (p for p, m in enumerate(bench.history) if m.message_id in bench.untouchable)
        return fixed.union(held)

    def text(self, shown: Shown) -> WindowText:
        """Return the text of a part."""
        return self._texts.of(shown.segment.segment_id, shown.part)

    def size(self, group: Group) -> int:
        """Return the tokens of a group."""
        return sum(self.bench.draft.size(message_id) for message_id in self.bench.ids(group))

    def results(self) -> list[Result]:
        """Return the tool results that may shrink, oldest first."""
        config, found = self.bench.config, []
        for shown in self.parts:
            if shown.place not in self.fixed and self._can_shrink(shown):
                passage = Passage(
                    self.text(shown),
                    tokens=shown.segment.tokens or 0,
                    most=config.evacuate_keep_percent / 100,
                    names=config.tombstone_names_percent / 100,
                    # A file that was edited still stands in its old view, but for a few lines.
                    is_dead=shown.segment.superseded_how not in (None, "edited"),
                )
                found.append(Result(shown, passage))
        return found

    def loose_groups(self) -> list[Group]:
        """Return the groups that may leave, oldest first, those of the recent turns behind the others."""
        bench = self.bench
        loose = [
            group
            for group in bench.groups
            if self.fixed.isdisjoint(group)
            and not any(message_id in bench.roots for message_id in bench.ids(group))
            and bench.history[group[0]].origin != "gc_notice"
        ]
        return sorted(loose, key=lambda g: (any(i in bench.protected for i in bench.ids(g)), g))

    def handle(self, group: Group) -> str | None:
        """Return what brings a group back: the id that its first part came in with."""
        places = set(group)
        segments = (s.segment for s in self.parts if s.place in places)
        handles = (segment.derived_from or segment.segment_id for segment in segments)
        return next(filter(is_handle, handles), None)

    def group_text(self, group: Group) -> WindowText:
        """Return all that a group says."""
        places = set(group)
        return WindowText.joined(self.text(s) for s in self.parts if s.place in places)

    def worth(self, older: list[WindowText]) -> Worth:
        """Return what everything in the view is worth; `older` texts stand in front of it."""
        worth = Worth(self.how)
        for text in older:
            worth.rate_lines(text.all, self.how.digest_line)
        # They were chosen once, and who said them left: without this the best would be given up first.
        worth.see((thing for text in older for thing in text.all), by_agent=True)
        by_place: dict[int, set[str]] = {}
        for shown in self.parts:
            things = self.text(shown).all
            worth.rate_lines(things, self._line_worth(shown))
            by_place.setdefault(shown.place, set()).update(things)
        for place, held in by_place.items():
            worth.see(held, by_agent=self.bench.history[place].role == "assistant")
        return worth

    def _parts(self) -> Iterator[Shown]:
        bench, heap = self.bench, self.analysis.state.heap
        for place, message in enumerate(bench.history):
            if message.origin == "gc_notice":
                continue
            ids = bench.host.segment_ids(message.message_id)
            for number, (part, segment_id) in enumerate(zip(message.parts, ids, strict=True)):
                yield Shown(place, number, part, heap.get(segment_id))

    def _can_shrink(self, shown: Shown) -> bool:
        part, segment = shown.part, shown.segment
        if part.kind != "tool_result" or part.server_side:
            return False
        if is_tombstone(part.text):
            return segment.derived_from is not None
        return (segment.tokens or 0) >= self.bench.config.evacuate_min_tokens

    def _line_worth(self, shown: Shown) -> float:
        if shown.part.kind != "tool_result":
            return self.how.agent_line
        return self.how.view_line if shown.segment.type == "code" else self.how.other_line
