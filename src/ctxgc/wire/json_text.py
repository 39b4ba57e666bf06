"""JSON in and out without surprises: limits on the way in, legal UTF-8 on the way out.

A number that Python cannot hold exactly (5,000 digits, 1e999) is kept in the data as its spelling; the
source bytes of the message keep it as a number.
"""

from __future__ import annotations

import json
import math
import re
from sys import intern
from typing import Any

from ctxgc.errors import MessageError

MAX_DEPTH = 64
MAX_BYTES = 64 * 1024 * 1024
MAX_NODES = 500_000

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_AS_TEXT = 'a text must be a whole message as JSON, such as {"role": "user", "content": "hello"}'
_MAX_DIGITS = 4_000
_SHORT = 64
_MOST = 10**_MAX_DIGITS


def load(text: str | bytes) -> tuple[dict[str, Any], bytes]:
    """Return the object of a JSON text and its exact bytes."""
    source = encode(text) if isinstance(text, str) else bytes(text)
    if len(source) > MAX_BYTES:
        raise _refusal(f"the message has {len(source)} bytes, more than {MAX_BYTES}")
    try:
        value = json.loads(
            source.decode(), parse_int=_integer, parse_float=_float, parse_constant=_constant
        )
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        raise MessageError(f"the message is not valid JSON: {error}", hint=_AS_TEXT) from None
    if not isinstance(value, dict):
        raise MessageError(
            f"the message must be a JSON object, not {type(value).__name__}", hint=_AS_TEXT
        )
    return snapshot(value), source


def snapshot(data: Any) -> dict[str, Any]:
    """Return a copy of a message that its owner can no longer change.

    Objects of the providers' SDKs (anything with `model_dump`) become the plain data that the SDK
    sends for them.
    """
    plain = _Snapshot().copy(data, 1)
    if not isinstance(plain, dict):
        several = "pass one message, or several with extend" if isinstance(plain, list) else ""
        raise _refusal(f"a message must be a JSON object, not {type(data).__name__}", several)
    return plain


def copy(value: Any) -> Any:
    """Return a copy of one value, as `copies` does."""
    kind = type(value)
    if kind is dict:
        return {key: copy(each) for key, each in value.items()}
    if kind is list:
        return [copy(each) for each in value]
    return value


def dump(value: Any) -> str:
    """Return compact JSON text that can always be encoded as UTF-8."""
    return _escape(json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False))


def encode(text: str) -> bytes:
    """Return the UTF-8 bytes of a JSON text; lone surrogates become escapes, which mean the same."""
    return _escape(text).encode()


def _escape(text: str) -> str:
    return _LONE_SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


class _Snapshot:
    """One walk over a message that copies it and counts what it sees."""

    def __init__(self) -> None:
        self.nodes = 0

    def copy(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is str:
            # Ids, roles and names come again and again: one object for each saves memory and misses.
            return intern(value) if len(value) <= _SHORT else value
        if kind is bool or value is None:
            return value
        if kind is int or kind is float:
            return _number(value)
        self.nodes += 1 + (len(value) if kind in (dict, list, tuple) else 0)
        if depth > MAX_DEPTH:
            raise _too_deep()
        if self.nodes > MAX_NODES:
            raise _refusal(f"the message holds more than {MAX_NODES} values")
        return self._container(value, depth)

    def _container(self, value: Any, depth: int) -> Any:
        if isinstance(value, dict):
            return {_key(key): self.copy(each, depth + 1) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.copy(each, depth + 1) for each in value]
        # A str or a number of a user's own class is plain data from here on.
        if isinstance(value, str):
            return self.copy(str.__str__(value), depth)
        if isinstance(value, int | float):
            return _number(int.__int__(value) if isinstance(value, int) else float.__float__(value))
        if hasattr(value, "model_dump"):
            return self.copy(_sent(value), depth)
        raise _refusal(f"a message cannot hold a {type(value).__name__}: it is not JSON")


def _sent(model: Any) -> Any:
    """Return what an SDK sends for one of its objects.

    Fields have their names on the wire (`from`, not `from_`), and what only the SDK knows, such as the
    parsed form of an answer, is left out: providers refuse it.
    """
    return model.model_dump(
        mode="json",
        by_alias=True,
        exclude_unset=True,
        exclude=getattr(model, "__api_exclude__", None),
        warnings=False,
    )


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise _refusal(f"the key {key!r} of a message is not a string")
    return key if type(key) is str else str.__str__(key)


def _number(number: float) -> float:
    if isinstance(number, int):
        if not -_MOST < number < _MOST:
            raise _refusal(f"a message cannot hold a number of more than {_MAX_DIGITS:,} digits")
    elif not math.isfinite(number):
        raise _refusal(f"{number} is not a JSON number")
    return number


def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) < _MAX_DIGITS else digits


def _float(spelling: str) -> float | str:
    number = float(spelling)
    return number if math.isfinite(number) else spelling


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _too_deep() -> MessageError:
    return _refusal(f"the message is nested deeper than {MAX_DEPTH} levels")


def _refusal(text: str, hint: str = "") -> MessageError:
    return MessageError(text, hint=hint or "pass one provider message as a dict or as JSON text")
