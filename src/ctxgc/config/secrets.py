"""Values as they may be shown: secrets masked, callables by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_MASK = "***"

_SECRET_KEY = re.compile(
    r"api_?key|access_?key|secret|passw|token$|authorization|credential|bearer|dsn$", re.IGNORECASE
)
_SECRET_TEXT = re.compile(
    r"\b(?:sk|pk|rk)-[\w-]{8,}"  # OpenAI, Anthropic and their relatives
    r"|\bgh[pousr]_\w{16,}|\bxox[abprs]-[\w-]{8,}|\bAKIA[0-9A-Z]{12,}|\bAIza[\w-]{20,}"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
    r"|(?<=://)[^/@\s]{1,512}(?=@)"
    r"|(?i:(?<=bearer )\S{1,4096})"
)


def mask_text(text: str) -> str:
    """Return the text with everything that looks like a key or a password masked."""
    return _SECRET_TEXT.sub(_MASK, text)


def shown(value: Any, key: str = "") -> Any:
    """Return a JSON-ready copy of a configuration value that is safe to print or log."""
    if isinstance(value, Mapping):
        return {str(name): shown(item, str(name)) for name, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [shown(item, key) for item in value]
    if isinstance(value, str):
        return _MASK if value and _SECRET_KEY.search(key) else mask_text(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return f"<{getattr(value, '__qualname__', type(value).__qualname__)}>"
