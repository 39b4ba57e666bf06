"""SessionIntake: how messages, and what is sent beside them, come into a session."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from ctxgc.budget import GCPolicy
from ctxgc.core.message import Format, Message
from ctxgc.session.collecting import collect_if_due
from ctxgc.session.facts import SessionFacts
from ctxgc.session.requests import calibrate
from ctxgc.session.secrecy import refuse_secrets
from ctxgc.session.syncing import is_plain, reformat, sync
from ctxgc.session.view import wrong_format
from ctxgc.wire import RawMessage, detect_format, parse, refuse_answers


class SessionIntake(SessionFacts):
    """What comes in; `Session` adds what goes out."""

    _format_is_guess: bool

    def append(self, message: RawMessage, format: Format | None = None) -> list[str]:  # noqa: A002
        """Take in one provider message and return the ids of its segments.

        Raises:
            MessageError: its shape is unknown, it cannot come next, or it holds a likely key and
                `secrets` says to refuse those; nothing was changed.
        """
        (parsed,) = self._parse([message], format)
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
        return self._w.take_all(self._parse(batch, format)) if batch else []

    def sync(
        self,
        messages: Iterable[RawMessage],
        format: Format | None = None,  # noqa: A002
    ) -> list[str]:
        """Take in a whole history again: only what is new comes in.

        Where the history differs from what came in before, the rest of the old one is stashed and the
        new one goes on from there. The same history twice changes nothing.
        """
        return sync(self._w, self._parse(list(messages), format))

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

    def _parse(self, batch: Sequence[RawMessage], asked: Format | None) -> list[Message]:
        known = self._w.format
        refuse_answers(batch, asked)
        seen = detect_format(list(batch)) if asked is None else asked
        # While all that came in was plain text, which fits every format, a clear sign may choose it.
        chosen = seen if known is None or (self._format_is_guess and seen != "openai") else known
        if asked is None and seen not in ("openai", chosen):
            raise wrong_format(chosen, seen)
        parsed = [parse(message, asked or chosen, uuid.uuid4().hex) for message in batch]
        if self.config.secrets == "refuse":
            refuse_secrets(parsed)
        if known is not None and chosen != known:
            reformat(self._w, chosen)
        plain = asked is None and all(map(is_plain, parsed))
        self._format_is_guess = self._format_is_guess and plain
        return parsed
