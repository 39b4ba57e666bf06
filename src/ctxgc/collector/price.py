"""Price: collecting to save money while the window is far from full.

A tool result is cheapest to shorten right after the agent has seen it, when little comes after it.
So before each request it is decided which results are dead by now, what of them must stay
(the lines that hold identifiers nothing else in the view holds), and whether the re-written tail
costs less than the tokens that every later request no longer reads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Protocol

import msgspec
from msgspec.structs import replace

from ctxgc.collector.arrival import ADMITTED, HUGE, IN_FEWER_WORDS, admitted, shortened
from ctxgc.collector.calls import SHARES, may_change, was_made, without_entries, without_old_text
from ctxgc.collector.digest import HEAD_CHARS, kept_lines, without_copies
from ctxgc.collector.liveness import (
    evidence,
    evidence_for,
    haunted,
    next_look,
    overdue,
    work_rule,
)
from ctxgc.collector.presets import Preset, without_recall
from ctxgc.collector.probation import Certificate, PlannedExit, Probation, looked_at
from ctxgc.collector.reader import Born, Item, Known, Reader
from ctxgc.collector.worth import Census, CopiedLines, PriceCover, cover
from ctxgc.core import Evidence, Message, Text, mask_secrets, short_tombstone
from ctxgc.economics import PriceSheet
from ctxgc.errors import MessageError
from ctxgc.wire import PartTexts, replace_arguments, replace_text, strings_of

# -- Sizes: the tokens of the messages of a view


class Sizes:
    """Knows what each message of a view has, and what any stretch of it has. `tokens` counts a message."""

    def __init__(self, tokens: Callable[[Message], int]) -> None:
        self._tokens = tokens
        self._sums = [0]

    @property
    def before(self) -> Sequence[int]:
        """The tokens before each place."""
        return self._sums

    def __len__(self) -> int:
        return len(self._sums) - 1

    def __getitem__(self, place: int) -> int:
        return self._sums[place + 1] - self._sums[place]

    def between(self, first: int, last: int) -> int:
        """Return the tokens of the messages from one place on, up to another one (not included)."""
        return self._sums[last] - self._sums[first]

    def follow(self, view: Sequence[Message]) -> None:
        """Count the messages of a view that are not counted yet."""
        for message in view[len(self) :]:
            self._sums.append(self._sums[-1] + self._tokens(message))

    def drop(self, place: int) -> None:
        """Count everything from a place on again next time."""
        del self._sums[place + 1 :]


# -- Where to cut: from which message on the history is worth being written anew


LEAST_REQUESTS = 2


class Offer(Protocol):
    """A result that may leave: its message's place, the tokens it would save, what waiting cost so far.

    `born` is the first request that carried it.
    """

    place: int
    saving: float
    rent: float
    born: int


class Billing(msgspec.Struct, frozen=True, kw_only=True):
    """What was paid so far, and what would have been paid without ever pruning, this request included.

    `beside` are the tokens of the system prompt and the tools.
    """

    bill: float
    unpruned_bill: float
    beside: float = 0.0
    is_cold: bool = False


def best_cut(
    offers: Sequence[Offer],
    sizes: Sizes,
    sent: int,
    *,
    books: Billing,
    sheet: PriceSheet,
    how: Preset,
    requests: int,
    waits: bool = False,
) -> int | None:
    """Return the place from which on to cut, or None when waiting is better.

    Args:
        offers: what may leave, the last of the view first.
        sizes: the tokens of every message of the view.
        sent: how many of them the last request carried.
        books: what was paid so far.
        sheet: the prices.
        how: the constants.
        requests: how many requests there were, this one included.
        waits: the cut is not made now, so nothing is cheaper for having come last.
    """
    worth = sheet.read * min(how.horizon, max(LEAST_REQUESTS, requests))
    extra = 0.0 if books.is_cold else sheet.write - sheet.read
    before, fresh = sizes.before, sizes.between(sent, len(sizes))
    whole = before[sent]
    won = rent = 0.0
    tail: tuple[float, float] | None = None
    best: tuple[float, int] | None = None
    for offer in offers:
        won += offer.saving
        rent += offer.rent
        rewritten = whole - before[offer.place] - won
        if rewritten < 0:
            rewritten = 0.0
        gain = worth * won - extra * rewritten
        if gain <= 0:
            continue
        cost = _cost(books, sheet, before[offer.place], rewritten + fresh)
        if cost > (1 + how.guard) * books.unpruned_bill:
            continue
        if requests - offer.born == 1 and not waits:
            tail = (gain, rewritten) if tail is None or gain > tail[0] else tail
        elif rent < how.patience * extra * (rewritten - (tail[1] if tail else 0.0)):
            continue
        if best is None or gain > best[0]:
            best = (gain, offer.place)
    return None if best is None else best[1]


def room_cut(
    offers: Sequence[Offer],
    sizes: Sizes,
    sent: int,
    *,
    need: float,
    books: Billing,
    sheet: PriceSheet,
    how: Preset,
    requests: int,
    is_full: bool = True,
) -> int | None:
    """Return the cheapest place from which on a cut wins the tokens that are needed, whatever it costs.

    Where all offers together win too little, None: there is room yet, and more will be dead later. In a full
    window it is the deepest place if they win half of the need, else None too: then lines of all results must
    compete, and a cut before that would only write the history twice.
    """
    worth = sheet.read * min(how.horizon, max(LEAST_REQUESTS, requests))
    extra = 0.0 if books.is_cold else sheet.write - sheet.read
    before, won = sizes.before, 0.0
    best: tuple[float, int] | None = None
    for offer in offers:
        won += offer.saving
        rewritten = max(0.0, before[sent] - before[offer.place] - won)
        gain = worth * won - extra * rewritten
        if won >= need and (best is None or gain > best[0]):
            best = (gain, offer.place)
    if best is not None:
        return best[1]
    return offers[-1].place if is_full and offers and won >= need / 2 else None


def _cost(books: Billing, sheet: PriceSheet, cached: float, written: float) -> float:
    """Return what the session will have paid after a request with so much cached and written."""
    kept = cached + books.beside
    read = sheet.write * kept if books.is_cold else sheet.read * kept
    return books.bill + read + sheet.write * written


# -- A round: the decision, before one request, on results that were sent before


Recall = Callable[[str, int], str]
"""The exact call that recalls a part of a message; empty when there is no way."""
Ghost = Callable[[str, int], float]
"""How strong the ghost of the kin of a part of a message is."""


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """Another text for one part of a message, and why; that of a call are its arguments."""

    message_id: str
    part: int
    text: str
    evidence: Evidence
    is_call: bool = False


def edited(view: Sequence[Message], edits: Sequence[Edit], *, masks: bool) -> list[Message]:
    """Return a view with edits, without secrets if those are masked; the work is that from the first on."""
    by_message: dict[str, list[Edit]] = {}
    for edit in edits:
        by_message.setdefault(edit.message_id, []).append(edit)
    new = list(view)
    for place in range(len(new) - 1, -1, -1):
        if not by_message:
            break
        for edit in by_message.pop(new[place].message_id, ()):
            new[place] = _with_text(new[place], edit, masks=masks)
    return new


def _with_text(message: Message, edit: Edit, *, masks: bool) -> Message:
    text = mask_secrets(edit.text) if masks else edit.text
    try:
        if edit.is_call:
            return replace_arguments(message, edit.part, text)
        return replace_text(message, edit.part, text, keep_media=False)
    except MessageError:
        return message


class PriceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a decision is about: the view before a request.

    `number` counts requests from 1; the last one carried the first `sent` messages of the view,
    unchanged, and the last decision saw the first `same`. No message in `untouchable` may change.
    `born` tells which request was the first that could carry a message. `can_recall` says whether the model
    can recall, `recall` gives the exact call for a part of a message, `ghost` how strong the ghost of its kin
    is; None while nothing was recalled. While cuts are paused only what arrives is shortened; in a tight
    window a cut does not wait, and takes at most `batch` results. `need` are tokens that must leave whatever
    that costs, and `over` are those above the hard limit. `masks` says that secrets are masked. `probation`
    is the plan that waits to be carried out.
    """

    context_limit: int
    can_recall: bool = True
    is_paused: bool = False
    is_tight: bool = False
    batch: int = 20
    need: int = 0
    over: int = 0
    masks: bool = False

    view: Sequence[Message]
    sent: int
    number: int
    books: Billing
    untouchable: Collection[str]
    recall: Recall
    born: Born | None = None
    ghost: Ghost | None = None
    same: int = 0
    probation: Probation | None = None


class Round:
    """Weighs what every dead result saves against what re-writing all behind it costs."""

    def __init__(
        self, reader: Reader, how: Preset, sheet: PriceSheet, sizes: Sizes, asked: PriceRequest
    ) -> None:
        self._reader = reader
        # A step of a tight window does not wait until what is dead has cost enough.
        how = replace(how, patience=0.0) if asked.is_tight else how
        self._spares_data = not (asked.is_tight or asked.need)
        self._how = how if asked.can_recall else without_recall(how)
        self._most = asked.batch if asked.is_tight and not asked.need else None
        self._sheet = sheet
        self._sizes = sizes
        self._asked = asked
        self._only: frozenset[str] | None = None
        self.held: dict[str, float] = {}
        """The messages that would leave but for a ghost, and how strong it is."""

    def edits(self) -> list[Edit]:
        """Return the stubs to make, in the order of the view."""
        asked = self._asked
        room = partial(room_cut, need=asked.need, is_full=asked.over > 0)
        cut = room if asked.need else best_cut
        place = self._place(self.offers()[: self._most], cut)
        if place is None:
            return []
        return list(reversed(list(islice(self._carry_out(place), self._most))))

    def exits(self) -> list[PlannedExit]:
        """Return what would leave by a cut that pays and is not made yet."""
        place = self._place(self.offers()[: self._most], partial(best_cut, waits=True))
        found = () if place is None else islice(self._leaving(place), self._most)
        return [PlannedExit(message_id=i.message_id, part=i.part, why=why) for i, why, _ in found]

    def proven(self, plan: Probation) -> list[Edit]:
        """Return the stubs for what is left of a plan, in the order of the view; none if they do not pay."""
        self._only = plan.sources()
        offers = [item for item in self.offers() if item.source in self._only]
        # It has waited already.
        self._how = replace(self._how, patience=0.0)
        place = self._place(offers, partial(best_cut, waits=True))
        return [] if place is None else list(reversed(list(self._carry_out(place))))

    def stub(self, item: Item, why: str, census: Census) -> PriceCover:
        """Return what would stay of an item in a view with such a census."""
        shares = SHARES if item.kind == "todo" else self._how.shares[_share_of(item, why)]
        return cover(
            item.text,
            item.shown,
            shares,
            census=census,
            how=self._how,
            size=item.chars,
            values=item.call.gathers,
        )

    def _place(self, offers: Sequence[Item], cut: Callable[..., int | None]) -> int | None:
        """Return from where on to cut: where it pays, or where it makes the room that is needed."""
        asked = self._asked
        return cut(
            offers,
            self._sizes,
            asked.sent,
            books=asked.books,
            sheet=self._sheet,
            how=self._how,
            requests=asked.number,
        )

    def offers(self) -> list[Item]:
        """Return the results that may leave and would save something, the last of the view first."""
        asked, request = self._asked, self._asked.number
        read, news, ghosts = self._sheet.read, self._reader.clues.news, asked.ghost is not None
        offers: list[Item] = []
        for item in self._reader.open.newest_first():
            if item.place >= asked.sent or item.message_id in asked.untouchable:
                continue
            is_news = item.heard < news or (item.call.gathers and not self._spares_data)
            if item.looks_at <= request or is_news or ghosts:
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
            item, why, self._reader.clues, self._how, self._asked.number
        )
        if self._asked.ghost is not None:
            item.wake()

    def _right(self, item: Item) -> tuple[str | None, int]:
        """Return by what right an item may leave, ghosts considered, and for how long it was idle."""
        how, request = self._how, self._asked.number
        why, idle = evidence(item, self._reader.clues, self._reader.census, how, request)
        if why == "idle" and item.call.gathers and self._spares_data:
            # Nobody reads data to change them: what they say may be asked for as long as there is room.
            return None, idle
        weight = 0.0 if self._asked.ghost is None else self._asked.ghost(item.message_id, item.part)
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
        if item.why_planned != why or self._asked.number >= item.plan_until:
            never = not item.planned_at
            item.planned_at, item.why_planned = self._asked.number, why
            item.planned = self._planned(item, why)
            if never:
                # A session that goes on after a restart has paid for what waited before it.
                waited = overdue(item, self._reader.clues, self._how, self._asked.number)
                item.rent = waited * self._sheet.read * item.planned
        return item.planned

    def _planned(self, item: Item, why: str) -> float:
        if self._sizes[item.place] < self._how.least_tokens:
            self._reader.open.drop(item)
            return 0.0
        return self._saving(item, self._cover(item, why))

    def _cover(self, item: Item, why: str) -> PriceCover:
        return self.stub(item, why, self._reader.census)

    def _saving(self, item: Item, plan: PriceCover) -> float:
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
        for item, why, plan in self._leaving(start):
            yield self._make(item, plan, self._evidence(item, why))

    def _leaving(self, start: int) -> Iterator[tuple[Item, str, PriceCover]]:
        """Yield what leaves from a place on, newest first, by what right, and what stays of it."""
        for place in range(self._asked.sent - 1, start - 1, -1):
            message_id = self._asked.view[place].message_id
            for item in reversed(self._reader.items_of(message_id)):
                why = None if message_id in self._asked.untouchable else self._may_leave(item)
                if why is None:
                    continue
                plan = self._cover(item, why)
                if self._saving(item, plan) > 0:
                    yield item, why, plan

    def _may_leave(self, item: Item) -> str | None:
        """Return by what right an item leaves now that all from a place on is written anew anyway."""
        how = self._how
        if item.stubbed_at is not None or self._sizes[item.place] < how.least_tokens:
            return None
        if self._only is not None and item.source not in self._only:
            return None
        return self._right(item)[0]

    def _make(self, item: Item, plan: PriceCover, evidence: Evidence) -> Edit:
        item.stubbed_at = self._asked.number
        tokens = self._tokens(item)
        self._reader.open.drop(item)
        self._reader.show(item, plan.kept, plan.listed, extra=HEAD_CHARS + plan.listed_chars)
        text = short_tombstone(
            tokens,
            evidence.brief,
            recall=self._asked.recall(item.message_id, item.part),
            names=plan.listed,
            kept=kept_lines(item.text, plan.kept),
        )
        is_call = item.kind == "todo"
        if is_call:
            text = without_entries(self._asked.view[item.place].parts[item.part].text, text)
        return Edit(
            message_id=item.message_id,
            part=item.part,
            text=text,
            evidence=evidence,
            is_call=is_call,
        )

    def _evidence(self, item: Item, why: str) -> Evidence:
        return evidence_for(item, why, self._reader.clues, self._asked.number)


def _certified(
    request: PriceRequest, plan: Probation, cuts: list[Edit], *, at_once: str = ""
) -> PricePlan:
    left = dict.fromkeys(edit.message_id for edit in cuts)
    said = plan.certificate(request.number, left, at_once=at_once)
    return PricePlan(cuts=cuts, certificate=said)


def _share_of(item: Item, why: str) -> str:
    """Return by which share lines of a result stay: a file's by what became of it, others by kind."""
    if why in ("edited", "elsewhere"):
        return why
    if item.call.gathers or item.kind == "other":
        return "gathered"
    return "idle" if item.kind == "view" else item.kind


# -- Before each request: what to send in fewer words


class PricePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What to do before a request: the view to show, and the edits that lead to it.

    `copies` were never sent; `cuts` change what was. `held` are the messages that stayed because of ghosts,
    and how strong those are. `probation` is the plan that waits from now on, and `certificate` what the
    cuts can show that have waited.
    """

    view: list[Message] = []
    copies: list[Edit] = []
    cuts: list[Edit] = []
    held: Mapping[str, float] = {}
    probation: Probation | None = None
    certificate: Certificate | None = None


class PriceCollector:
    """Decides for one session; what it decides counts as done until `reset`.

    `tokens` counts a message; `texts` has what messages say that were read before; `trims_calls` lets
    the agent's own calls be shortened too. `probation` is how many steps a plan waits for uses of what would
    leave. `margin` is the share of the window above the hard limit up to which it is not full.
    """

    def __init__(
        self,
        how: Preset,
        sheet: PriceSheet,
        tokens: Callable[[Message], int],
        *,
        texts: PartTexts | None = None,
        trims_calls: bool = False,
        probation: int = 0,
        margin: float = 0.0,
    ) -> None:
        self._how = how
        self._margin = margin
        self._steps = probation
        self._trims_calls = trims_calls
        self._sheet = sheet
        self._tokens = tokens
        self._sizes = Sizes(tokens)
        self.held: Mapping[str, float] = {}
        """What the last decision let stay because of ghosts: messages, and how strong the ghosts are."""
        self._texts = PartTexts() if texts is None else texts
        self._reader = Reader(self._texts, reads_lists=trims_calls)

    def plan(self, request: PriceRequest) -> PricePlan:
        """Return what to leave out of the view before a request: what it shows twice, and what is dead."""
        margin = int(self._margin * request.context_limit)
        request = replace(request, over=max(0, request.over - margin))
        copies = self.spare_copies(request)
        view = request.view
        if copies:
            view = edited(view, copies, masks=request.masks)
            self.settle(view[request.same :])
        now = replace(request, view=view, is_paused=request.is_paused and not request.need)
        found = self._on_probation(now) if self._steps else PricePlan(cuts=self.cut(now))
        shown = edited(view, found.cuts, masks=request.masks)
        return replace(found, view=shown, copies=copies, held=self.held)

    def _on_probation(self, request: PriceRequest) -> PricePlan:
        """Return cuts that have waited for the steps that they must, or that make room; else the plan."""
        self._sizes.follow(request.view)
        decision = self._round(request)
        plan = self._watched(request, decision)
        if request.need:
            return self._at_once(request, plan)
        if plan is not None and plan.exits and (request.is_paused or not plan.is_over):
            # What waits goes on paying for its place, as it does without a plan.
            decision.offers()
            return PricePlan(probation=plan)
        if plan is not None and plan.exits:
            return self._proven(request, plan, decision)
        exits = () if request.is_paused else tuple(decision.exits())
        self.held = decision.held
        return PricePlan(probation=self._plan(request, exits) if exits else None)

    def _watched(self, request: PriceRequest, decision: Round) -> Probation | None:
        """Return the open plan without what was used since."""
        plan = request.probation
        if plan is None:
            return None
        return looked_at(plan, self._reader, request.view, request.number, decision.stub)

    def _at_once(self, request: PriceRequest, plan: Probation | None) -> PricePlan:
        """Return the cuts that make room, but for what was used while a plan waited."""
        used = {use.message_id for use in plan.used} if plan is not None else set[str]()
        cuts = self.cut(replace(request, untouchable={*request.untouchable, *used}))
        if not cuts:
            return PricePlan(probation=plan)
        closed = plan or replace(self._plan(request), planned=len(cuts))
        return _certified(request, closed, cuts, at_once="room")

    def _proven(self, request: PriceRequest, plan: Probation, decision: Round) -> PricePlan:
        """Return the cuts of a plan that has waited; none, and no plan, where they do not pay any longer."""
        cuts, self.held = decision.proven(plan), decision.held
        return _certified(request, plan, cuts) if cuts else PricePlan()

    def _plan(self, request: PriceRequest, exits: tuple[PlannedExit, ...] = ()) -> Probation:
        return Probation(
            planned_at=request.number,
            steps=self._steps,
            planned=len(exits),
            exits=exits,
            read=len(request.view),
        )

    def spare_copies(self, request: PriceRequest) -> list[Edit]:
        """Return shorter texts for new results that repeat what the view shows already.

        They were never sent, so nothing that the provider has cached changes. The same goes for the
        calls of edits that were made since.
        """
        self._sizes.drop(request.same)
        fresh = self._reader.follow(
            request.view, request.number, born=request.born, same=request.same
        )
        calls = list(self._calls(fresh, request)) if self._trims_calls else []
        return [*calls, *self._arrivals(fresh, request)]

    def cut(self, request: PriceRequest) -> list[Edit]:
        """Return stubs for results that were sent before and are dead by now; none when waiting is better.

        `spare_copies` comes first, and `settle` when it changed the view.
        """
        if request.is_paused:
            return []
        self._sizes.follow(request.view)
        decision = self._round(request)
        edits, self.held = decision.edits(), decision.held
        return edits

    def _round(self, request: PriceRequest) -> Round:
        return Round(self._reader, self._how, self._sheet, self._sizes, request)

    def in_work(self, request: int) -> dict[tuple[str, int], str]:
        """Return the results that are in work, by message and part, each with the root rule that holds it."""
        reader, how = self._reader, self._how
        return {
            (item.message_id, item.part): work_rule(item, request)
            for item in reader.open
            if evidence(item, reader.clues, reader.census, how, request)[0] is None
        }

    def let_go(self, request: int) -> dict[tuple[str, int], tuple[str, int]]:
        """Return the results that the running work holds no longer: which rule did, and since when not."""
        reader, how = self._reader, self._how
        return {
            (item.message_id, item.part): (
                work_rule(item, request),
                overdue(item, reader.clues, how, request),
            )
            for item in reader.open
            if evidence(item, reader.clues, reader.census, how, request)[0] == "idle"
        }

    def settle(self, changed: Iterable[Message]) -> None:
        """Take messages for those that the last decision asked for."""
        self._reader.settle(changed)

    def recount(self) -> None:
        """Messages have other sizes than before."""
        self._sizes.drop(0)
        self._reader.reopen()

    def reset(self) -> None:
        """Forget everything; the view is read again before the next request."""
        self._sizes.drop(0)
        self._reader = Reader(self._texts, reads_lists=self._trims_calls)

    def _calls(self, fresh: list[Item], request: PriceRequest) -> Iterator[Edit]:
        names = self._reader.census.names
        for item in fresh:
            found = self._reader.call_of(item) if item.call.kind == "edit" else None
            if found is None or not self._may_trim(item, found[0], request):
                continue
            known, part = found
            text = without_old_text(known.message.parts[part].text, lambda name: names[name] <= 1)
            if text is not None:
                self._reader.say(known, part, strings_of(text))
                message_id = known.message.message_id
                made = Evidence(kind="superseded", how="edit made")
                yield Edit(message_id=message_id, part=part, text=text, evidence=made, is_call=True)

    def _may_trim(self, item: Item, call: Known, request: PriceRequest) -> bool:
        """Tell whether the call of an edit was never sent, worked, and may be shortened."""
        result = self._reader.known[item.message_id].message
        return (
            call.place >= request.sent
            and call.message.message_id not in request.untouchable
            and may_change(call.message)
            and was_made(result, item.part)
        )

    def _arrivals(self, fresh: list[Item], request: PriceRequest) -> Iterator[Edit]:
        # After a restart all is new to the reader, but what was sent must not change at arrival.
        unsent = [item for item in fresh if item.place >= request.sent]
        large = [item for item in unsent if self._is_large(item) and self._may_thin(item, request)]
        huge = self._huge(large, request)
        for item in large:
            if item.source in huge:
                yield self._admit(item, request)
            elif (edit := self._shortened(item, request)) is not None:
                yield edit

    def _is_large(self, item: Item) -> bool:
        return self._size(item) >= self._how.least_tokens

    def _size(self, item: Item) -> int:
        return self._tokens(self._reader.known[item.message_id].message)

    def _huge(self, items: list[Item], request: PriceRequest) -> set[str]:
        """Return which new results are huge and do not fit, the largest first."""
        limit = request.context_limit
        over = float(request.over)
        huge: set[str] = set()
        for item in sorted(items, key=self._size, reverse=True):
            size = self._size(item)
            if over <= 0 or size <= HUGE * limit:
                break
            over -= size - ADMITTED * limit
            huge.add(item.source)
        return huge

    def _admit(self, item: Item, request: PriceRequest) -> Edit:
        """Show some lines of a huge result, and how many there are."""
        names = self._reader.census.names
        shown = admitted(
            item,
            tokens=self._size(item),
            most=ADMITTED * request.context_limit,
            words=self._asked_words(request.view),
            names=[name for name in item.text.names if names[name] <= 1],
            recall=request.recall(item.message_id, item.part),
        )
        item.stubbed_at = request.number
        self._reader.open.drop(item)
        self._reader.show(item, shown.kept)
        return Edit(
            message_id=item.message_id, part=item.part, text=shown.text, evidence=shown.evidence
        )

    def _asked_words(self, view: Sequence[Message]) -> list[str]:
        """Return the names and longer words of the user's last message, in lower case."""
        asked = next((m for m in reversed(view) if m.role == "user" and not m.results()), None)
        found = Text("" if asked is None else asked.text())
        return sorted({name.lower() for name in found.names} | found.words)

    def _shortened(self, item: Item, request: PriceRequest) -> Edit | None:
        """Return a new result without what the view shows already, and the rest in fewer words."""
        message = self._reader.known[item.message_id].message
        short = shortened(item, message.parts[item.part].text, self._how)
        if short is not None:
            self._reader.retell(item, short)
        runs = self._reader.copies.find(
            item.text, self._how, item.source, is_data=item.call.gathers
        )
        if runs:
            return self._without(item, runs, request)
        if short is None:
            return None
        return Edit(message_id=item.message_id, part=item.part, text=short, evidence=IN_FEWER_WORDS)

    def _may_thin(self, item: Item, request: PriceRequest) -> bool:
        """Tell whether marks may take the place of lines: not in what was asked for by its handle.

        Where nothing recalls the result, a mark would lead nowhere once its source has left.
        """
        is_free = item.message_id not in request.untouchable and not item.call.recalls
        return is_free and bool(request.recall(item.message_id, item.part))

    def _without(self, item: Item, runs: list[CopiedLines], request: PriceRequest) -> Edit:
        gone = {line for run in runs for line in range(run.first, run.last)}
        kept = [n for n in range(len(item.text.lines)) if n not in gone]
        self._reader.show(item, kept)
        names = {run.source: self._reader.describe(run.source, request.number) for run in runs}
        text = without_copies(item.text, runs, names, request.recall(item.message_id, item.part))
        evidence = Evidence(kind="copy", by=f"the earlier {names[runs[0].source]}")
        return Edit(message_id=item.message_id, part=item.part, text=text, evidence=evidence)
