"""Secrecy: what is said and done about likely keys in what comes in. Their values are never told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ctxgc.core.message import Message
from ctxgc.core.secrets import find_secrets
from ctxgc.core.segment import SECRET_TAG, ContextSegment
from ctxgc.errors import MessageError
from ctxgc.session.events import Events


def refuse_secrets(messages: Sequence[Message]) -> None:
    """Make sure that no message holds a likely key.

    Raises:
        MessageError: one does; the message names the rule and the part, never the value.
    """
    for number, message in enumerate(messages, 1):
        for place, part in enumerate(message.parts, 1):
            for secret in find_secrets(part.text)[:1]:
                raise MessageError(
                    f"part {place} ({part.kind}) of message {number} holds what looks like "
                    f"a key of the kind '{secret.rule}'",
                    hint="take it out, or set the key 'secrets' to 'mark' or 'mask'",
                    rule=secret.rule,
                    part=place,
                )


def tell_secrets(events: Events, segments: Iterable[ContextSegment]) -> None:
    """Tell which of these segments hold likely keys, and of which kind."""
    for segment in segments:
        for tag in segment.tags:
            if tag.startswith(SECRET_TAG):
                rule = tag.removeprefix(SECRET_TAG)
                events.emit("secret_found", segment_id=segment.segment_id, rule=rule)
