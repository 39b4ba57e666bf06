"""Thrift: collecting to save money while the window is far from full.

A tool result is cheapest to shorten right after the agent has seen it, when little stands behind it.
So before each request this room decides which results are dead by now, what of them must stay
(the lines that hold identifiers nothing else in the view holds), and whether the re-written tail
costs less than the tokens that every later request no longer reads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from ctxgc.core import Message
from ctxgc.economics import PriceSheet
from ctxgc.strategies.mark_sweep.calls import may_change, was_made, without_old_text
from ctxgc.strategies.mark_sweep.copies import CopiedLines
from ctxgc.strategies.mark_sweep.items import Item
from ctxgc.strategies.mark_sweep.presets import Preset
from ctxgc.strategies.mark_sweep.price_cover import without_copies
from ctxgc.strategies.mark_sweep.reader import Born, Known, Reader
from ctxgc.strategies.mark_sweep.rounds import Billing, Edit, Ghost, Recall, Round, Sizes
from ctxgc.wire import PartTexts, strings_of

# -- Thrift: before each request, what to send in fewer words


class PriceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a decision is about: the view before a request.

    `number` counts requests from 1; the last one carried the first `sent` messages of the view,
    unchanged, and the last decision saw the first `same`. No message in `untouchable` may change.
    `born` tells which request was the first that could carry a message. `recall` gives the exact call
    that recalls a part of a message, `ghost` how strong the ghost of its kin is; None while nothing was
    recalled.
    """

    view: Sequence[Message]
    sent: int
    number: int
    books: Billing
    untouchable: Collection[str]
    recall: Recall
    born: Born | None = None
    ghost: Ghost | None = None
    same: int = 0


class Thrift:
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
        decision = Round(
            self._reader,
            self._how,
            self._sheet,
            sizes=self._sizes,
            view=request.view,
            sent=request.sent,
            request=request.number,
            books=request.books,
            untouchable=request.untouchable,
            recall=request.recall,
            ghost=request.ghost,
        )
        edits, self.held = decision.edits(), decision.held
        return edits

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
                yield Edit(
                    message_id=message_id, part=part, text=text, why="edit made", is_call=True
                )

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
        recall = request.recall(item.message_id, item.part) if self._loses(item) else ""
        text = without_copies(item.text, runs, names, recall)
        return Edit(message_id=item.message_id, part=item.part, text=text, why="already shown")

    def _loses(self, item: Item) -> bool:
        """Tell whether names of an item stand nowhere now: line numbers may differ from the source's."""
        return not self._reader.census.names.keys() >= item.text.names
