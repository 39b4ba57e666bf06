"""A round: the decision, before one request, on results that were sent before."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

import msgspec

from ctxgc.core.message import Message
from ctxgc.economics import PriceSheet
from ctxgc.thrift.cover import Cover, cover
from ctxgc.thrift.cutting import Books, best_cut
from ctxgc.thrift.dying import WHY, evidence, haunted, next_look, overdue
from ctxgc.thrift.items import Item
from ctxgc.thrift.presets import Preset
from ctxgc.thrift.reader import Reader
from ctxgc.thrift.sizes import Sizes
from ctxgc.thrift.stub import HEAD_CHARS, stub
from ctxgc.thrift.todos import SHARES, without_entries

Recall = Callable[[str, int], str]
"""The exact call that recalls a part of a message; empty when there is no way."""
Ghost = Callable[[str, int], float]
"""How strong the ghost of the kin of a part of a message is."""


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """Another text for one part of a message, and why; that of a call are its arguments."""

    message_id: str
    part: int
    text: str
    why: str
    is_call: bool = False


class Round:
    """Weighs what every dead result saves against what re-writing all behind it costs."""

    def __init__(
        self,
        reader: Reader,
        how: Preset,
        sheet: PriceSheet,
        *,
        sizes: Sizes,
        view: Sequence[Message],
        sent: int,
        request: int,
        books: Books,
        untouchable: Collection[str],
        recall: Recall,
        ghost: Ghost | None = None,
    ) -> None:
        self._reader = reader
        self._how = how
        self._sheet = sheet
        self._sizes = sizes
        self._view = view
        self._sent = sent
        self._request = request
        self._books = books
        self._untouchable = untouchable
        self._recall = recall
        self._ghost = ghost
        self.held: dict[str, float] = {}
        """The messages that would leave but for a ghost, and how strong it is."""

    def edits(self) -> list[Edit]:
        """Return the stubs to make, in the order of the view."""
        place = best_cut(
            self._offers(),
            self._sizes,
            self._sent,
            books=self._books,
            sheet=self._sheet,
            how=self._how,
            requests=self._request,
        )
        return [] if place is None else list(reversed(list(self._carry_out(place))))

    def _offers(self) -> list[Item]:
        """Return the results that may leave and would save something, the last of the view first."""
        request, sent, untouchable = self._request, self._sent, self._untouchable
        read, news, ghosts = self._sheet.read, self._reader.clues.news, self._ghost is not None
        offers: list[Item] = []
        for item in self._reader.open.newest_first():
            if item.place >= sent or item.message_id in untouchable:
                continue
            if item.looks_at <= request or item.heard < news or ghosts:
                self._weigh(item)
            if item.saving > 0:
                item.rent += read * item.saving
                offers.append(item)
        return offers

    def _weigh(self, item: Item) -> None:
        """Note what a stub would save now, and for how long that is sure."""
        why, _ = self._right(item)
        item.saving = 0.0 if why is None else self._expected(item, why)
        item.looks_at, item.heard = next_look(
            item, why, self._reader.clues, self._how, self._request
        )
        if self._ghost is not None:
            item.wake()

    def _right(self, item: Item) -> tuple[str | None, int]:
        """Return by what right an item may leave, ghosts considered, and for how long it was idle."""
        how, request = self._how, self._request
        why, idle = evidence(item, self._reader.clues, self._reader.census, how, request)
        weight = 0.0 if self._ghost is None else self._ghost(item.message_id, item.part)
        if not weight:
            return why, idle
        delay = round(how.hold * weight)
        right, idle = haunted(item, why, idle, how, delay=delay, request=request)
        if right != why:
            self.held[item.message_id] = weight
        return right, idle

    def _expected(self, item: Item, why: str) -> float:
        """Return the tokens that a stub would save; looked at again now and then, since the view changes.

        The longer an item waits, the less often, so that waiting costs next to nothing.
        """
        if item.why_planned != why or self._request >= item.plan_until:
            never = not item.planned_at
            item.planned_at, item.why_planned = self._request, why
            item.planned = self._planned(item, why)
            if never:
                # A session that goes on after a restart has paid for what waited before it.
                waited = overdue(item, self._reader.clues, self._how, self._request)
                item.rent = waited * self._sheet.read * item.planned
        return item.planned

    def _planned(self, item: Item, why: str) -> float:
        if self._sizes[item.place] < self._how.least_tokens:
            self._reader.open.drop(item)
            return 0.0
        return self._saving(item, self._cover(item, why))

    def _cover(self, item: Item, why: str) -> Cover:
        shares = SHARES if item.kind == "todo" else self._how.shares[why]
        return cover(
            item.text,
            item.shown,
            shares,
            census=self._reader.census,
            how=self._how,
            size=item.chars,
        )

    def _saving(self, item: Item, plan: Cover) -> float:
        """Return the tokens that a stub saves; nothing when it is hardly smaller."""
        chars = item.chars + item.extra
        saved = chars - plan.chars - HEAD_CHARS
        if saved < self._how.least_saving * chars:
            return 0.0
        return saved * self._density(item)

    def _density(self, item: Item) -> float:
        """The tokens of a character of a message."""
        chars = self._reader.chars_beside(item)
        return self._sizes[item.place] / max(1, chars)

    def _tokens(self, item: Item) -> int:
        """The tokens that a stub names: those of its message, or of the call that wrote a list."""
        if item.kind != "todo":
            return self._sizes[item.place]
        return round((item.chars + item.extra) * self._density(item))

    def _carry_out(self, start: int) -> Iterator[Edit]:
        """Make every stub from a place on, newest first: the newest copy of a name carries it."""
        for place in range(self._sent - 1, start - 1, -1):
            message_id = self._view[place].message_id
            for item in reversed(self._reader.items_of(message_id)):
                why = None if message_id in self._untouchable else self._may_leave(item)
                if why is None:
                    continue
                plan = self._cover(item, why)
                if self._saving(item, plan) > 0:
                    yield self._make(item, plan, why)

    def _may_leave(self, item: Item) -> str | None:
        """Return by what right an item leaves now that all from a place on is written anew anyway."""
        how = self._how
        if item.stubbed_at is not None or self._sizes[item.place] < how.least_tokens:
            return None
        why, idle = self._right(item)
        if why is not None:
            return why
        company = max(1.0, how.company * how.hold)
        return "idle" if item.kind == "view" and idle >= company else None

    def _make(self, item: Item, plan: Cover, why: str) -> Edit:
        item.stubbed_at = self._request
        tokens = self._tokens(item)
        self._reader.open.drop(item)
        self._reader.show(item, plan.kept, plan.listed, extra=HEAD_CHARS + plan.listed_chars)
        text = stub(
            item.text,
            plan,
            tokens=tokens,
            why=WHY[why],
            recall=self._recall(item.message_id, item.part),
        )
        is_call = item.kind == "todo"
        if is_call:
            text = without_entries(self._view[item.place].parts[item.part].text, text)
        return Edit(
            message_id=item.message_id, part=item.part, text=text, why=WHY[why], is_call=is_call
        )
