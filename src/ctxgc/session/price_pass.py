"""The price pass: before a request, while the window is far from full, collect what costs more to keep.

It leaves out what the view shows twice, and cuts what costs more to keep than to re-write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from ctxgc.core import Heap, Message, mask_secrets, recall_call
from ctxgc.economics import PriceSheet, requests_to_pay_back
from ctxgc.errors import MessageError
from ctxgc.invariants import first_difference
from ctxgc.session.accounting import Accounting, RequestLog
from ctxgc.session.apply import ViewEditor
from ctxgc.session.collection import Collector
from ctxgc.session.events import Events
from ctxgc.session.protected_messages import ProtectedMessages
from ctxgc.session.state import SessionOptions, SessionState
from ctxgc.session.view import PRICE_READER, BoundThinking, View, compare
from ctxgc.strategies import (
    Billing,
    Edit,
    GCPlugin,
    GCResult,
    GCTriggerReason,
    MarkSweepStrategy,
    Preset,
    PriceRequest,
    Segmenter,
    Thrift,
    custom,
    preset,
)
from ctxgc.wire import PartTexts, replace_arguments, replace_text

LEAST_WINDOW = 100_000
"""In a smaller window what leaves is chosen by its worth, when room is needed, not by its price."""


def price_preset(plugin: GCPlugin) -> Preset | None:
    """Return by which constants a strategy wants to collect for the price; None if it does not.

    Raises:
        ConfigError: its constants are wrong.
    """
    if not isinstance(plugin, MarkSweepStrategy):
        return None
    chosen = plugin.thrift
    own = None if chosen.constants is None else custom(chosen.constants)
    if chosen.preset == "off":
        return None
    return own or preset(chosen.preset)


def _price_collector(
    plugin: GCPlugin,
    context_limit: int,
    prices: PriceSheet,
    tokens: Callable[[Message], int],
    texts: PartTexts,
) -> Thrift | None:
    """Return what collects for the price, if the strategy asks for it and the window is large enough."""
    how = price_preset(plugin)
    if not isinstance(plugin, MarkSweepStrategy) or how is None or context_limit < LEAST_WINDOW:
        return None
    chosen = plugin.thrift
    trims = how.trims_calls if chosen.trim_calls is None else chosen.trim_calls
    return Thrift(how, prices, tokens, texts=texts, trims_calls=trims)


class PricePass:
    """Collects for the price alone; does nothing if the strategy or the window does not call for it."""

    def __init__(
        self,
        *,
        options: SessionOptions,
        state: SessionState,
        view: View,
        heap: Heap,
        segmenter: Segmenter,
        accounting: Accounting,
        requests: RequestLog,
        protected: ProtectedMessages,
        thinking: BoundThinking,
        editor: ViewEditor,
        collector: Collector,
        events: Events,
        texts: PartTexts,
    ) -> None:
        self._options = options
        self._state = state
        self._view = view
        self._heap = heap
        self._segmenter = segmenter
        self._accounting = accounting
        self._requests = requests
        self._protected = protected
        self._thinking = thinking
        self._editor = editor
        self._collector = collector
        self._events = events
        self._texts = texts
        self.collector: Thrift | None = None
        self.adopt_plugin()

    def adopt_plugin(self) -> None:
        """Work for the plugin of the options from now on."""
        options = self._options
        limit, tokens = self._accounting.budget.context_limit, self._accounting.tokens
        self.collector = _price_collector(
            options.plugin, limit, options.prices, tokens, self._texts
        )

    def is_on(self) -> bool:
        """Return whether what leaves is chosen by its price."""
        return self.collector is not None

    def recount(self) -> None:
        """Forget the sizes of messages, after the counter has learned."""
        if self.collector is not None:
            self.collector.recount()

    def cut_for_price(self) -> GCResult | None:
        """Leave out what the view shows twice, and collect what costs more to keep than to re-write.

        Raises:
            StoreError: what would leave could not be made durable; nothing has changed.
        """
        if self.collector is None or not self._options.config.auto_trigger:
            return None
        try:
            return self._cut(self.collector)
        except BaseException:
            self.collector.reset()
            raise

    def _cut(self, collector: Thrift) -> GCResult | None:
        request = self._request()
        copies = collector.spare_copies(request)
        self._view.note_seen(PRICE_READER)
        view = request.view
        if copies:
            view = self._edited(view, copies)
            collector.settle(view[request.same :])
        paused = self._state.thrashing.is_paused(self._state.requests)
        cut = [] if paused else collector.cut(replace(request, view=view))
        if not copies and not cut:
            return None
        new = self._thinking.strip_edited(self._edited(view, cut))
        result = None
        if cut:
            result = self._collector.impose(
                new, self._options.plugin.name, reason=GCTriggerReason.PRE_MESSAGE, scope="minor",
                details=self._details(new, cut) | _ghosts(collector.held),
            )  # fmt: skip
        else:
            self._editor.apply(new, compare(self._view.messages, new))
            self._events.emit("deduplicated", message_ids=[edit.message_id for edit in copies])
        collector.settle(self._view.messages[self._view.seen_by(PRICE_READER) :])
        return result

    def _request(self) -> PriceRequest:
        state, requests = self._state, self._requests
        unpruned, warm = requests.unpruned_tokens(), not requests.is_cold()
        return PriceRequest(
            view=self._view.messages,
            sent=state.sent_messages,
            same=self._view.seen_by(PRICE_READER),
            number=state.requests + 1,
            born=self._born,
            books=Billing(
                bill=state.savings.savings.bill,
                unpruned_bill=state.savings.unpruned_bill(unpruned, warm=warm),
                beside=self._accounting.beside_tokens(),
                is_cold=requests.is_cold(),
            ),
            untouchable=self._protected.held() | state.undone.left_alone(state.requests),
            recall=self._recall_call,
            ghost=self._ghost if state.ghosts.any_left(state.requests) else None,
        )

    def _born(self, message_id: str) -> int:
        arrival = self._view.arrival_of(message_id)
        return self._state.requests + 1 if arrival is None else arrival.request

    def _ghost(self, message_id: str, part: int) -> float:
        segment = self._heap.get(self._segmenter.segment_ids(message_id)[part])
        return self._state.ghosts.weight(segment, self._state.requests)

    def _recall_call(self, message_id: str, part: int) -> str:
        """Return the call that recalls a part; inside a session a segment's own id will do as handle."""
        if self._options.recall_call is None:
            return ""
        segment_id = self._segmenter.segment_ids(message_id)[part]
        original = self._heap.get(segment_id).derived_from or segment_id
        return recall_call(original, self._options.recall_call)

    def _edited(self, view: Sequence[Message], edits: Sequence[Edit]) -> list[Message]:
        """Return the view with edits; only what comes after the first of them is looked at."""
        by_message: dict[str, list[Edit]] = {}
        for edit in edits:
            by_message.setdefault(edit.message_id, []).append(edit)
        new = list(view)
        for place in range(len(new) - 1, -1, -1):
            if not by_message:
                break
            for edit in by_message.pop(new[place].message_id, ()):
                new[place] = self._with_text(new[place], edit)
        return new

    def _with_text(self, message: Message, edit: Edit) -> Message:
        masks = self._options.config.secrets == "mask"
        text = mask_secrets(edit.text) if masks else edit.text
        try:
            if edit.is_call:
                return replace_arguments(message, edit.part, text)
            return replace_text(message, edit.part, text, keep_media=False)
        except MessageError:
            return message

    def _details(self, new: Sequence[Message], cut: Sequence[Edit]) -> dict[str, object]:
        """Say what the collection saves, what it re-writes, and when it has paid for itself."""
        now, tokens = self._view.messages, self._accounting.tokens
        first = first_difference(now, new)
        before = sum(map(tokens, now[first:]))
        after = sum(map(tokens, new[first:]))
        won = max(0, before - after)
        return {
            "tokens_won": won,
            "tokens_rewritten": after,
            "requests_to_pay_back": requests_to_pay_back(won, after, self._options.prices),
            "why": {edit.message_id: edit.why for edit in cut},
        }


def _ghosts(held: Mapping[str, float]) -> dict[str, object]:
    """Say what stayed only because something similar was recalled before."""
    return {"ghosts": {name: round(weight, 2) for name, weight in held.items()}} if held else {}
