"""The scene of a window collection: what is shown, what of it may be touched, and what it is worth."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import cache, cached_property
from importlib.resources import files
from typing import Annotated

import msgspec
from msgspec import Meta

from ctxgc.core import Analysis, ContextSegment, Part, Text, is_line, is_tombstone, is_word
from ctxgc.strategies.builtin import CollectionRun
from ctxgc.strategies.mark_sweep.cover import Passage
from ctxgc.strategies.mark_sweep.digest import handle_of

# -- The constants of a window collection: data, fitted by `ctxgc lab fit window`


FILE = "window_constants.json"

Share = Annotated[float, Meta(ge=0, le=1)]
Weight = Annotated[float, Meta(ge=0)]


class WindowConstants(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How room is made in a full window.

    Attributes:
        freeze_share: stubs of earlier collections stay as they are while this share of the target is
            free without them.
        lines_share: the share of the target that lines and names shall have; the oldest groups dissolve
            for it.
        names_share: the share of that room which bare names get.
        work_share: what the target grows by, as a share of itself, above what must stay; but
        most_share: never beyond this share of the window.
        least_work_share: the same for a window that what must stay almost fills; but
        tight_share: never beyond this share of the window.
        keep_whole: a stub of more than this share of its original is not worth the loss;
        least_saving: nor is one that saves fewer tokens.
        least_rate: the worth per token below which no line is kept, though there were room.
        used_by_agent: what a name is worth more if the agent used it.
        often: the power of the number of messages that hold a thing; 0 counts each thing once.
        hex_worth: the worth of a long hexadecimal number, where that of another name is 1.
        word_worth: the worth of a plain word that at most `rare_word` messages hold.
        agent_line: the worth of a line that was said by the agent or a user; `view_line` of one out of
            a file, `other_line` of one out of another result, `digest_line` of one that only the digest
            of earlier collections holds.
        slow: the power of a thing's age that its worth is divided by; `fast` is that of lines which
            only results hold.
    """

    freeze_share: Share
    lines_share: Share
    names_share: Share
    work_share: Share
    most_share: Share
    least_work_share: Share
    tight_share: Share
    keep_whole: Share
    least_saving: Annotated[int, Meta(ge=0)]
    least_rate: Weight
    used_by_agent: Weight
    often: Weight
    hex_worth: Weight
    word_worth: Weight
    rare_word: Annotated[int, Meta(ge=0)]
    agent_line: Weight
    view_line: Weight
    other_line: Weight
    digest_line: Weight
    slow: Weight
    fast: Weight


class WindowFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file of constants, and where they come from."""

    provenance: dict[str, str]
    constants: WindowConstants


@cache
def window_file() -> WindowFile:
    """Return the file that ships with the package."""
    return msgspec.json.decode(files(__package__).joinpath(FILE).read_bytes(), type=WindowFile)


def window_constants() -> WindowConstants:
    """Return the constants that ship with the package."""
    return window_file().constants


# -- Worth: how likely it is that something in a view is needed again


_HEX = re.compile(r"[0-9a-f]{8,}|[0-9A-F]{8,}")
_UNIT = 1_000_000
"""Worth is a whole number, so that sums do not depend on the order of a set."""


class Worth:
    """Counts who holds what, message by message, and weighs it.

    Names count by how often they were seen and whether the agent used them, lines by who said them;
    everything counts less the longer ago it was seen. `messages` is how many there are.
    """

    def __init__(self, messages: int, how: WindowConstants) -> None:
        self._how = how
        self._holders: Counter[str] = Counter()
        self._last: dict[str, int] = {}
        self._used: set[str] = set()
        rated = {how.agent_line, how.view_line, how.digest_line}
        self._lines: dict[float, set[str]] = {worth: set() for worth in sorted(rated, reverse=True)}
        self._known: dict[str, int] = {}
        self._favour: dict[str, float] = {}
        self._messages = messages

    def see(self, place: int, held: Sequence[frozenset[str]], *, by_agent: bool = False) -> None:
        """Take note of what the parts of a message hold; the messages come in their order."""
        found = held[0] if len(held) == 1 else frozenset[str]().union(*held)
        self._holders.update(found)
        self._last.update(dict.fromkeys(found, place))
        if by_agent:
            self._used |= found

    def rate_lines(self, lines: Iterable[str], worth: float) -> None:
        """Take note of what some lines are worth; the highest counts."""
        if worth != self._how.other_line:
            self._lines[worth].update(lines)

    def favour(self, things: Iterable[str], ghost: float) -> None:
        """Let things count for more, since the like of what holds them was recalled."""
        for thing in things:
            self._favour[thing] = max(ghost, self._favour.get(thing, 0.0))

    @property
    def least_rate(self) -> float:
        """The worth per token below which a line is not kept."""
        return _UNIT * self._how.least_rate

    def of(self, thing: str) -> int:
        """Return the worth of something in the view."""
        known = self._known.get(thing)
        if known is None:
            favour = 1 + self._favour.get(thing, 0.0)
            known = self._known[thing] = round(_UNIT * self._weigh(thing) * favour)
        return known

    def _weigh(self, thing: str) -> float:
        age = self._messages - self._last[thing]
        holders, how = self._holders[thing], self._how
        if is_line(thing):
            worth = self._line_worth(thing)
            fading = how.slow if worth == how.agent_line else how.fast
            return float(worth * holders**how.often / age**fading)
        if is_word(thing):
            return float(how.word_worth / age**how.slow) if holders <= how.rare_word else 0.0
        worth = how.hex_worth if _HEX.fullmatch(thing) else 1.0
        worth *= 1 + how.used_by_agent if thing in self._used else 1
        return float(worth * holders**how.often / age**how.slow)

    def _line_worth(self, line: str) -> float:
        for worth, lines in self._lines.items():
            if line in lines:
                return worth
        return self._how.other_line


# -- The scene of a window collection: what is shown, and what of it may be touched


NEWEST = 2
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


class Scene:
    """What one collection finds."""

    def __init__(self, run: CollectionRun, analysis: Analysis, how: WindowConstants) -> None:
        self.run = run
        self.how = how
        self.analysis = analysis
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
        fixed.update([s.place for s in self.parts if s.segment.segment_id in roots])
        held = run.untouchable.ids
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
        """Return the groups that may leave, oldest first, those of the recent turns behind the others."""
        run = self.run
        loose = [
            group
            for group in run.groups
            if self.fixed.isdisjoint(group)
            and not any(message_id in run.roots for message_id in run.ids(group))
            and run.history[group[0]].origin != "gc_notice"
        ]
        return sorted(loose, key=lambda g: (any(i in run.protected for i in run.ids(g)), g))

    def handle(self, group: Group) -> str | None:
        """Return what brings a group back."""
        return handle_of(shown.segment for shown in self.parts_of(group))

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

    def _passage(self, shown: ShownPart) -> Passage:
        config, segment = self.run.config, shown.segment
        most = 1.0 if shown.place >= self._newest else config.evacuate_keep_percent / 100
        return Passage(
            shown.text,
            tokens=segment.tokens or 0,
            most=most,
            names=config.tombstone_names_percent / 100,
            # A file that was edited still stands in its old view, but for a few lines.
            is_dead=segment.superseded_how not in (None, "edited") and not self.ghost(shown),
        )

    def _can_shrink(self, shown: ShownPart) -> bool:
        part, segment = shown.part, shown.segment
        if part.kind != "tool_result" or part.server_side:
            return False
        if is_tombstone(part.text):
            return segment.derived_from is not None
        return (segment.tokens or 0) >= self.run.config.evacuate_min_tokens

    def _line_worth(self, shown: ShownPart) -> float:
        if shown.part.kind != "tool_result":
            return self.how.agent_line
        return self.how.view_line if shown.segment.type == "code" else self.how.other_line
