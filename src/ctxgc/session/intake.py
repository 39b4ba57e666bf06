"""SessionIntake: how messages, and what is sent beside them, come into a session."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from ctxgc.budget import GCPolicy
from ctxgc.core.message import Format
from ctxgc.session.collecting import collect_if_due
from ctxgc.session.facts import SessionFacts
from ctxgc.session.requests import calibrate
from ctxgc.session.syncing import reformat, sync
from ctxgc.wire import RawMessage, detect_format, parse


class SessionIntake(SessionFacts):
    """What comes in; `Session` adds what goes out."""

    _format_is_guess: bool

    def append(self, message: RawMessage, format: Format | None = None) -> list[str]:  # noqa: A002
        """Take in one provider message and return the ids of its segments.

        Raises:
            MessageError: its shape is unknown, or it cannot come next; nothing was changed.
        """
        parsed = parse(message, format or self._format_of([message]), uuid.uuid4().hex)
        self._w.view.check_next(parsed)
        ids = self._w.take(parsed)
        if self.config.auto_trigger and not self.config.check_before_send:
            collect_if_due(self._w)
        return ids

    def extend(
        self,
        messages: Iterable[RawMessage],
        format: Format | None = None,  # noqa: A002
    ) -> list[str]:
        """Take in several messages, all of them or none."""
        batch = list(messages)
        if not batch:
            return []
        chosen = format or self._format_of(batch)
        return self._w.take_all([parse(m, chosen, uuid.uuid4().hex) for m in batch])

    def sync(
        self,
        messages: Iterable[RawMessage],
        format: Format | None = None,  # noqa: A002
    ) -> list[str]:
        """Take in a whole history again: only what is new comes in.

        Where the history differs from what came in before, the rest of the old one is stashed and the
        new one goes on from there. The same history twice changes nothing.
        """
        batch = list(messages)
        chosen = format or self._format_of(batch)
        return sync(self._w, [parse(m, chosen, uuid.uuid4().hex) for m in batch])

    def set_system(self, text: str) -> None:
        """Count a system prompt that is sent beside the messages."""
        self._w.books.set_system(text)

    def set_tools(
        self, tools: Sequence[dict[str, Any]], policy: GCPolicy = GCPolicy.LOCKED
    ) -> None:
        """Count the tool schemas that are sent beside the messages."""
        self._w.books.set_tools(tools, policy)

    def enrich(self, key: str, text: str) -> None:
        """Count text that is added to each request beside the messages, such as documents found.

        `gc_budget` clears all of it first; the result then lists the source `enrichment`.
        """
        self._w.books.enrich(key, text)

    def report_usage(self, input_tokens: int) -> bool:
        """Learn from the input tokens that the provider counted; tell whether an estimate changed."""
        return calibrate(self._w, input_tokens)

    def _format_of(self, batch: Sequence[RawMessage]) -> Format:
        """The session's format; while all that came in was plain text, a clear sign may change it."""
        known = self._w.format
        seen = detect_format(list(batch))
        if known is not None and known != seen and self._format_is_guess:
            reformat(self._w, seen)
            return seen
        self._format_is_guess = self._format_is_guess and seen == "openai"
        return known if known is not None else seen
