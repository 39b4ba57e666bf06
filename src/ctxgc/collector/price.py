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
from ctxgc.collector.presets import Preset
from ctxgc.collector.reader import Born, Item, Known, Reader
from ctxgc.collector.worth import CopiedLines, PriceCover, cover
from ctxgc.core import Evidence, Message, mask_secrets, short_tombstone
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
        if requests - offer.born == 1:
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
) -> int | None:
    """Return the cheapest place from which on a cut wins the tokens that are needed, whatever it costs.

    Where all offers together win too little, the deepest place if they win half of the need, else None: then
    lines of all results must compete, and a cut before that would only write the history twice.
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
    return offers[-1].place if offers and won >= need / 2 else None


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
    `born` tells which request was the first that could carry a message. `recall` gives the exact call
    that recalls a part of a message, `ghost` how strong the ghost of its kin is; None while nothing was
    recalled. While cuts are paused only copies are left out; in a tight window a cut does not wait, and takes
    at most `batch` results. `need` are tokens that must leave whatever that costs. `masks` says that secrets
    are masked.
    """

    context_limit: int
    is_paused: bool = False
    is_tight: bool = False
    batch: int = 20
    need: int = 0
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


class Round:
    """Weighs what every dead result saves against what re-writing all behind it costs."""

    def __init__(
        self, reader: Reader, how: Preset, sheet: PriceSheet, sizes: Sizes, asked: PriceRequest
    ) -> None:
        self._reader = reader
        # A step of a tight window does not wait until what is dead has cost enough.
        self._how = replace(how, patience=0.0) if asked.is_tight else how
        self._most = asked.batch if asked.is_tight and not asked.need else None
        self._sheet = sheet
        self._sizes = sizes
        self._asked = asked
        self.held: dict[str, float] = {}
        """The messages that would leave but for a ghost, and how strong it is."""

    def edits(self) -> list[Edit]:
        """Return the stubs to make, in the order of the view."""
        place = self._place()
        if place is None:
            return []
        return list(reversed(list(islice(self._carry_out(place), self._most))))

    def _place(self) -> int | None:
        """Return from where on to cut: where it pays, or where it makes the room that is needed."""
        asked = self._asked
        cut = partial(room_cut, need=asked.need) if asked.need else best_cut
        return cut(
            self._offers()[: self._most],
            self._sizes,
            asked.sent,
            books=asked.books,
            sheet=self._sheet,
            how=self._how,
            requests=asked.number,
        )

    def _offers(self) -> list[Item]:
        """Return the results that may leave and would save something, the last of the view first."""
        asked, request = self._asked, self._asked.number
        read, news, ghosts = self._sheet.read, self._reader.clues.news, asked.ghost is not None
        offers: list[Item] = []
        for item in self._reader.open.newest_first():
            if item.place >= asked.sent or item.message_id in asked.untouchable:
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
            item, why, self._reader.clues, self._how, self._asked.number
        )
        if self._asked.ghost is not None or self._reader.leaning_on(item):
            item.wake()

    def _right(self, item: Item) -> tuple[str | None, int]:
        """Return by what right an item may leave, ghosts considered, and for how long it was idle."""
        how, request = self._how, self._asked.number
        if any(
            each.message_id in self._asked.untouchable for each in self._reader.leaning_on(item)
        ):
            return None, 0
        why, idle = evidence(item, self._reader.clues, self._reader.census, how, request)
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
        shares = SHARES if item.kind == "todo" else self._how.shares[_share_of(item, why)]
        return cover(
            item.text,
            item.shown,
            shares,
            census=self._reader.census,
            how=self._how,
            size=item.chars,
            values=item.call.gathers,
        )

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
        for place in range(self._asked.sent - 1, start - 1, -1):
            message_id = self._asked.view[place].message_id
            for item in reversed(self._reader.items_of(message_id)):
                why = None if message_id in self._asked.untouchable else self._may_leave(item)
                if why is None:
                    continue
                plan = self._cover(item, why)
                if self._saving(item, plan) > 0:
                    evidence = self._evidence(item, why)
                    for each in self._reader.leaning_on(item):
                        # It must not point at lines that are no longer there.
                        yield self._make(each, _all_shown(each), evidence)
                    yield self._make(item, plan, evidence)

    def _may_leave(self, item: Item) -> str | None:
        """Return by what right an item leaves now that all from a place on is written anew anyway."""
        how = self._how
        if item.stubbed_at is not None or self._sizes[item.place] < how.least_tokens:
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


def _all_shown(item: Item) -> PriceCover:
    return PriceCover(kept=tuple(item.shown), listed=(), chars=item.chars)


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
    and how strong those are.
    """

    view: list[Message]
    copies: list[Edit]
    cuts: list[Edit]
    held: Mapping[str, float] = {}


class PriceCollector:
    """Decides for one session; what it decides counts as done until `reset`.

    `tokens` counts a message; `texts` has what messages say that were read before; `trims_calls` lets
    the agent's own calls be shortened too.
    """

    def __init__(
        self,
        how: Preset,
        sheet: PriceSheet,
        tokens: Callable[[Message], int],
        *,
        texts: PartTexts | None = None,
        trims_calls: bool = False,
    ) -> None:
        self._how = how
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
        copies = self.spare_copies(request)
        view = request.view
        if copies:
            view = edited(view, copies, masks=request.masks)
            self.settle(view[request.same :])
        is_paused = request.is_paused and not request.need
        cuts = [] if is_paused else self.cut(replace(request, view=view))
        return PricePlan(
            view=edited(view, cuts, masks=request.masks), copies=copies, cuts=cuts, held=self.held
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
        return [*calls, *self._copies(fresh, request)]

    def cut(self, request: PriceRequest) -> list[Edit]:
        """Return stubs for results that were sent before and are dead by now; none when waiting is better.

        `spare_copies` comes first, and `settle` when it changed the view.
        """
        self._sizes.follow(request.view)
        decision = Round(self._reader, self._how, self._sheet, self._sizes, request)
        edits, self.held = decision.edits(), decision.held
        return edits

    def in_work(self, request: int) -> dict[tuple[str, int], str]:
        """Return the results that are in work, by message and part, each with the root rule that holds it."""
        reader, how = self._reader, self._how
        return {
            (item.message_id, item.part): work_rule(item, request)
            for item in reader.open
            if evidence(item, reader.clues, reader.census, how, request)[0] is None
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

    def _copies(self, fresh: list[Item], request: PriceRequest) -> Iterator[Edit]:
        # After a restart all is new to the reader, but what was sent must not change for a copy.
        unsent = [item for item in fresh if item.place >= request.sent]
        for item in unsent:
            message = self._reader.known[item.message_id].message
            runs = self._reader.copies.find(item.text, self._how, item.source)
            large = self._tokens(message) >= self._how.least_tokens
            if runs and large and item.message_id not in request.untouchable:
                yield self._without(item, runs, request)

    def _without(self, item: Item, runs: list[CopiedLines], request: PriceRequest) -> Edit:
        gone = {line for run in runs for line in range(run.first, run.last)}
        kept = [n for n in range(len(item.text.lines)) if n not in gone]
        self._reader.show(item, kept)
        names = {run.source: self._reader.describe(run.source, request.number) for run in runs}
        recall = request.recall(item.message_id, item.part)
        if not recall:
            self._reader.lean(item, names)
        text = without_copies(item.text, runs, names, recall)
        evidence = Evidence(kind="copy", by=f"the earlier {names[runs[0].source]}")
        return Edit(message_id=item.message_id, part=item.part, text=text, evidence=evidence)
