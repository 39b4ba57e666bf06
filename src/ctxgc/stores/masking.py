"""Documents without likely keys, for files that leave the machine.

A document is masked string by string, and a string that holds JSON is masked inside, so that what
was JSON still is.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from ctxgc.core.secrets import mask_secrets
from ctxgc.stores.base import Collection

OWN_BOOKS: tuple[Collection, ...] = ("state",)
"""They hold no conversation, and a session cannot go on without each value of them."""


def masked_document(collection: Collection, doc: dict[str, Any]) -> dict[str, Any]:
    """Return a document in which each likely key is replaced by the name of its rule."""
    return doc if collection in OWN_BOOKS else _object(doc)


def _object(doc: dict[str, Any]) -> dict[str, Any]:
    is_message = "format" in doc and isinstance(doc.get("source"), str)
    return {
        key: _packed(value) if is_message and key == "source" else _value(value, str(key))
        for key, value in doc.items()
    }


def _value(value: Any, name: str = "") -> Any:
    if isinstance(value, str):
        return _text(value, name)
    if isinstance(value, dict):
        return _object(value)
    if isinstance(value, list):
        return [_value(item, name) for item in value]
    return value


def _text(text: str, name: str) -> str:
    if text.lstrip()[:1] in ("{", "["):
        try:
            inside = json.loads(text)
        except (ValueError, RecursionError):
            return mask_secrets(text)
        masked = _value(inside)
        return text if masked == inside else json.dumps(masked)
    # A rule may need the name that a value is given: {"api_key": "..."}.
    prefix = f"{name}: "
    masked = mask_secrets(prefix + text)
    return masked.removeprefix(prefix) if masked.startswith(prefix) else mask_secrets(text)


def _packed(source: str) -> str:
    """Mask a message that is kept as the bytes in which it came."""
    try:
        text = base64.b64decode(source).decode()
    except (binascii.Error, UnicodeDecodeError):
        return source
    masked = _text(text, "")
    return source if masked == text else base64.b64encode(masked.encode()).decode()
