"""The scene of a window collection: what is shown, what of it may be touched, and what it is worth."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

import msgspec

from ctxgc.core.analysis import Analysis
from ctxgc.core.message import Part
from ctxgc.core.segment import ContextSegment
from ctxgc.core.text import Text
from ctxgc.core.tombstone import is_tombstone
from ctxgc.strategies.digest import handle_of
from ctxgc.strategies.window_constants import WindowConstants
from ctxgc.strategies.window_cover import Passage
from ctxgc.strategies.window_worth import Worth
from ctxgc.strategies.workbench import Workbench

NEWEST = 2
HEAD_TOKENS = 28
"""What the first line of a stub takes."""

Group = tuple[int, ...]


class Shown(msgspec.Struct, frozen=True, gc=False):
    """A part in the view: the place of its message, its number there, its segment, and what it says."""

    place: int
    number: int
    part: Part
    segment: ContextSegment
    text: Text


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
    def place(self) -> tuple[int, int]:
        """The place of its message, and its number there."""
        return self.shown.place, self.shown.number

    @property
    def is_stub(self) -> bool:
        """Whether it shrank before."""
        return is_tombstone(self.shown.part.text)


class Scene:
    """What one collection finds."""

    def __init__(self, bench: Workbench, analysis: Analysis, how: WindowConstants) -> None:
        self.bench = bench
        self.how = how
        self.analysis = analysis
        bench.host.texts.keep([message.message_id for message in bench.history])

    @cached_property
    def parts(self) -> list[Shown]:
        """Every part of the view but those of notices."""
        host, by_id = self.bench.host, self.analysis.state.heap.by_id
        segment_ids, text_of = host.segment_ids, host.texts.of
        found: list[Shown] = []
        for place, message in enumerate(self.bench.history):
            if message.origin == "gc_notice":
                continue
            message_id = message.message_id
            both = zip(message.parts, segment_ids(message_id), strict=True)
            for number, (part, segment_id) in enumerate(both):
                text = text_of(message_id, number, part)
                found.append(Shown(place, number, part, by_id[segment_id], text))
        return found

    @cached_property
    def fixed(self) -> set[int]:
        """The places of the newest messages with their groups, and of whatever a root rule names.

        But not of results that must shrink, because the window would not hold what is fixed otherwise.
        """
        bench, roots = self.bench, self.analysis.roots
        fixed = {p for group in bench.groups if group[-1] >= self._newest for p in group}
        fixed.update([s.place for s in self.parts if s.segment.segment_id in roots])
        held = bench.untouchable.ids
        untouchable = {p for p, m in enumerate(bench.history) if m.message_id in held}
        limit = bench.usage.get("context_limit", 0)
        if limit and self.size((*fixed.union(untouchable),)) > self.how.tight_share * limit:
            fixed -= {s.place for s in self.parts if self._can_shrink(s)}
        return fixed | untouchable

    @cached_property
    def _newest(self) -> int:
        """The place from which on messages are the newest."""
        return len(self.bench.history) - min(NEWEST, self.bench.config.recent_messages)

    @cached_property
    def _by_place(self) -> dict[int, list[Shown]]:
        found: dict[int, list[Shown]] = {}
        for shown in self.parts:
            found.setdefault(shown.place, []).append(shown)
        return found

    def parts_of(self, group: Group) -> list[Shown]:
        """Return the parts of a group."""
        return [shown for place in group for shown in self._by_place.get(place, ())]

    def size(self, group: Group) -> int:
        """Return the tokens of a group."""
        return sum(self.bench.draft.size(message_id) for message_id in self.bench.ids(group))

    def results(self) -> list[Result]:
        """Return the tool results that may shrink, oldest first."""
        fixed, can_shrink = self.fixed, self._can_shrink
        loose = [s for s in self.parts if s.part.kind == "tool_result" and s.place not in fixed]
        return [Result(shown, self._passage(shown)) for shown in loose if can_shrink(shown)]

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
        """Return what brings a group back."""
        return handle_of(shown.segment for shown in self.parts_of(group))

    def group_text(self, group: Group) -> Text:
        """Return all that a group says."""
        return Text.joined(shown.text for shown in self.parts_of(group))

    def worth(self, older: list[Text], places: Collection[int]) -> Worth:
        """Return what is worth how much that these messages hold, and `older` texts in front of all."""
        worth = Worth(len(self.bench.history), self.how)
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
            by_agent = self.bench.history[place].role == "assistant"
            worth.see(place, [each.text.things for each in shown], by_agent=by_agent)
        return worth

    def ghost(self, shown: Shown) -> float:
        """Return how strong the ghost of what a result shows is."""
        is_result = shown.part.kind == "tool_result"
        return self.analysis.state.ghost(shown.segment) if is_result else 0.0

    def _passage(self, shown: Shown) -> Passage:
        config, segment = self.bench.config, shown.segment
        most = 1.0 if shown.place >= self._newest else config.evacuate_keep_percent / 100
        return Passage(
            shown.text,
            tokens=segment.tokens or 0,
            most=most,
            names=config.tombstone_names_percent / 100,
            # A file that was edited still stands in its old view, but for a few lines.
            is_dead=segment.superseded_how not in (None, "edited") and not self.ghost(shown),
        )

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
