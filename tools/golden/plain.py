"""Plain answers: JSON in one form, and names for whatever chance has named.

A random id becomes a placeholder that counts first appearances, so that goldens still show which ids
are the same. Texts that are digests of content are no chance and remain.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from ctxgc.core.segment import StoredText

_KINDS = {
    "plan": r"plan-[0-9a-f]{32}",
    "checkpoint": r"\d{8}T\d{12}Z-[0-9a-f]{8}",
    "handle": r"h-[a-z2-7]{16}(?![a-z2-7])",
    "segment": r"seg-[0-9a-f]{16}",
    "notice": r"(?<=_)[0-9a-f]{12}(?![0-9a-f])",
    "id": r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])",
}
_RANDOM = re.compile("|".join(f"(?P<{kind}>{text})" for kind, text in _KINDS.items()))
_MOMENT = re.compile(r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)")
_AGE = re.compile(r"\b\d+ (?:s|min) old\b")
_SCORE = re.compile(r"(?<=score is low )\(\d\.\d+\)")
_KEEPS_HEX = {"digest"}
_IN_ANY_ORDER = {"pinned_messages", "pinned_message_ids"}


class Plain:
    """Makes answers plain; one for a whole golden, so that a name is the same throughout.

    Args:
        known: texts that are no chance although they look like it, and remain.
        hide_times: whether moments, ages and the scores that follow from them become placeholders,
            for scenarios under the real clock.
    """

    def __init__(self, known: frozenset[str] = frozenset(), *, hide_times: bool = False) -> None:
        self._known = known
        self._hide_times = hide_times
        self._names: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def text(self, text: str) -> str:
        """Return a text with placeholders for its random ids."""
        named = _RANDOM.sub(self._name, text)
        if not self._hide_times:
            return named
        return _SCORE.sub("(<score>)", _AGE.sub("<age>", _MOMENT.sub("<time>", named)))

    def value(self, value: Any) -> Any:
        """Return JSON-ready data with placeholders for its random ids."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(key)): self._under(key, each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(each) for each in value]
        return value

    def _under(self, key: object, value: Any) -> Any:
        if key in _KEEPS_HEX:
            return value
        # These are in the order of random ids.
        return sorted(self.value(value)) if key in _IN_ANY_ORDER else self.value(value)

    def json(self, value: Any) -> str:
        """Return anything that msgspec knows as indented JSON, made plain, with a final newline."""
        ready = msgspec.to_builtins(value, enc_hook=readable)
        return json.dumps(self.value(ready), indent=1, ensure_ascii=False) + "\n"

    def _name(self, match: re.Match[str]) -> str:
        found, kind = match[0], match.lastgroup or "id"
        if found in self._known:
            return found
        if found not in self._names:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._names[found] = f"<{kind}-{self._counts[kind]}>"
        return self._names[found]


def readable(value: Any) -> Any:
    """Return as JSON-ready data what msgspec does not know; for its `enc_hook`."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, StoredText):
        return value()
    raise TypeError(f"a golden cannot hold a {type(value).__name__}")
