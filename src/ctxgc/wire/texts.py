"""The texts of the parts of a history, each read once."""

from __future__ import annotations

from collections.abc import Collection

from ctxgc.core import Message, Names, Part, Text, is_tombstone, kept_of
from ctxgc.wire.tools import strings_of

_LONG = 200
_VERY_LONG = 8_000


class PartTexts:
    """Caches the text of every part in the view."""

    def __init__(self) -> None:
        self._names = Names()
        self._known: dict[str, dict[int, tuple[str, Text]]] = {}

    def read(self, message: Message) -> None:
        """Read a message as it comes in, so that a collection need not.

        The lines of very long results are left to the collection: they would delay a request, and are few.
        """
        for number, part in enumerate(message.parts):
            text = self.of(message.message_id, number, part)
            if part.kind == "tool_result" and _LONG <= text.size < _VERY_LONG:
                _ = text.line_things
            _ = text.things

    def of(self, message_id: str, number: int, part: Part) -> Text:
        """Return the text of a part: of a call its arguments, of a tombstone the lines kept under it."""
        known = self._known.setdefault(message_id, {})
        found = known.get(number)
        if found is None or found[0] is not part.text:
            found = known[number] = (part.text, Text(_said(part), self._names))
        return found[1]

    def keep(self, message_ids: Collection[str]) -> None:
        """Forget all other messages."""
        for message_id in self._known.keys() - set(message_ids):
            del self._known[message_id]


def _said(part: Part) -> str:
    if part.kind == "tool_call":
        return "\n".join(filter(None, (part.name, strings_of(part.text))))
    return kept_of(part.text) if is_tombstone(part.text) else part.text
