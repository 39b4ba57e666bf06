"""Automatic recall: what a new message names and only the stash holds comes back by itself.

It comes back as lines at the end of the view, never into its old place: so the prefix that the
provider has cached stays as it is. The lines leave again with the next collection.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from itertools import takewhile

from ctxgc.core.identifiers import identifiers
from ctxgc.core.mentions import Mentions
from ctxgc.core.message import Message
from ctxgc.core.secrets import mask_secrets
from ctxgc.core.segment import ContextSegment
from ctxgc.core.tombstone import describe, is_tombstone
from ctxgc.session.faults import note_faults
from ctxgc.session.stash import excerpt
from ctxgc.session.swapping import swap
from ctxgc.session.verdict import Change
from ctxgc.session.workings import Workings
from ctxgc.wire import text_message

MOST_NAMES = 8
MOST_SHARE = 0.02
MESSAGE_TOKENS = 8


class Mentioned:
    """Knows which names only the stash holds, and brings their lines back when they are used."""

    def __init__(self, workings: Workings) -> None:
        self._w = workings
        self._names = Mentions()
        self._indexed: dict[str, ContextSegment] = {}
        self.last: Message | None = None

    def bring_back(self) -> Message | None:
        """Add the lines around names that came in since the last request and only the stash holds.

        Nothing is added beyond 2 % of the window, nor what would make a collection due.
        """
        w = self._w
        fresh = self._fresh()
        asking = self._asking(fresh) if w.config.auto_recall and fresh else []
        if not asking:
            return None
        names = self._only_stashed(self._unheld(asking))[:MOST_NAMES]
        lines = self._lines(names, self._room())
        if not lines:
            return None
        needed = lines.keys() & self._unheld([m for m in asking if not m.results()])
        text = "\n".join(lines.values())
        format_ = w.view.messages[0].format
        self.last = text_message("user", text, format_, f"recall_{uuid.uuid4().hex}", "gc_notice")
        change = Change(gone=[], edited=[], added=[self.last])
        swap(w, [*w.view.messages, self.last], change, created_by="auto_recall")
        self._note_faults(needed)
        w.events.emit("recalled", names=names, automatic=True)
        return self.last

    def _room(self) -> int:
        budget, config = self._w.books.budget, self._w.config
        full = config.target_percent if config.continuous else config.threshold_percent
        left = budget.context_limit * full / 100 - budget.total_tokens() - MESSAGE_TOKENS
        return int(min(budget.context_limit * MOST_SHARE, left))

    def _fresh(self) -> set[str]:
        """Return the messages that came in since the last request."""
        w = self._w
        known = takewhile(lambda arrival: arrival.request > w.requests, reversed(w.view.arrivals))
        return {arrival.message_id for arrival in known}

    def _asking(self, fresh: set[str]) -> list[Message]:
        """Return the new messages whose names bring lines back; they stand at the end of the view."""
        found: list[Message] = []
        for message in reversed(self._w.view.messages):
            if not fresh:
                break
            if message.message_id in fresh and self._may_ask(message):
                found.append(message)
            fresh.discard(message.message_id)
        return found[::-1]

    def _follow_stash(self) -> None:
        """Index what was stashed since the last time, and forget what came back or was deleted."""
        stashed, read = self._w.heap.index.stashed, self._w.heap.mentions.names_of
        for segment_id in self._indexed.keys() - stashed.keys():
            self._names.discard(segment_id, self._indexed.pop(segment_id).text)
        for segment_id in stashed.keys() - self._indexed.keys():
            segment = self._indexed[segment_id] = stashed[segment_id]
            self._names.add(segment_id, segment.text, read(segment_id, segment.text))

    def _unheld(self, fresh: list[Message]) -> dict[str, None]:
        """Return the names in new messages that nobody else in the view holds."""
        found: dict[str, None] = {}
        for message in fresh:
            own = set(self._w.segment_ids(message.message_id))
            for part in message.parts:
                if part.kind in ("text", "tool_result") and not is_tombstone(part.text):
                    names = (n for n in identifiers(part.text) if self._holds_alone(n, own))
                    found.update(dict.fromkeys(names))
        return found

    def _may_ask(self, message: Message) -> bool:
        """Tell whether a message's names bring lines back: a user's always do.

        Outputs do where the window is tight. Where what leaves is chosen by its price, names and lines
        stay behind, and what an output names stands in the output itself.
        """
        if message.role == "assistant":
            return False
        return self._w.thrift is None or not message.results()

    def _holds_alone(self, name: str, own: set[str]) -> bool:
        working = self._w.heap.mentions
        return own.issuperset(working.holders(name)) and not working.is_common(name)

    def _only_stashed(self, unheld: Iterable[str]) -> list[str]:
        if not unheld:
            return []
        self._follow_stash()
        return [name for name in unheld if self._names.holders(name)]

    def _note_faults(self, names: Iterable[str]) -> None:
        """What a user names was needed again; what an output names by the way is no sign of that."""
        needed = map(self._newest, sorted(names))
        note_faults(self._w, [segment for segment in needed if segment is not None])

    def _lines(self, names: list[str], budget: int) -> dict[str, str]:
        blocks: dict[str, str] = {}
        for name in names:
            segment = self._newest(name)
            if segment is None:
                continue
            head = f"[ctxgc: {name} stands in {describe(segment)}, moved out earlier]"
            block = f"{head}\n{excerpt(segment.text, pattern=name)}"
            if self._w.config.secrets == "mask":
                block = mask_secrets(block)
            cost = self._w.counter.count(block)
            if cost <= budget:
                budget -= cost
                blocks[name] = block
        return blocks

    def _newest(self, name: str) -> ContextSegment | None:
        known = [self._indexed[i] for i in self._names.holders(name) if i in self._indexed]
        outputs = [segment for segment in known if segment.part != "tool_call"]
        return max(outputs, key=lambda segment: segment.position, default=None)
