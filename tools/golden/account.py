"""An account: what happened in a scenario, in sections, one fact per line."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ctxgc import CtxgcError
from ctxgc.stores import COLLECTIONS, Store
from tools.golden.plain import Plain, readable

_LONG_TEXT = 160
_LONG_LINE = 300


class Account:
    """Writes down what a scenario found; long texts are cut, with a digest of the whole."""

    def __init__(self, plain: Plain | None = None) -> None:
        self._plain = plain or Plain()
        self._parts: list[str] = []

    def say(self, title: str, value: Any, *, most: int = _LONG_LINE) -> None:
        """Write a section: a line for each item of a list or mapping, else one line.

        Lines longer than `most` are cut.
        """
        ready = self._plain.value(msgspec.to_builtins(value, enc_hook=readable))
        if isinstance(ready, list):
            lines = [_line(each, most) for each in ready]
        elif isinstance(ready, Mapping):
            lines = [line for key, each in ready.items() for line in _lines(key, each, most)]
        else:
            lines = [_line(ready, most)]
        self._parts.append("\n".join([f"== {title}", *lines]))

    def documents(self, store: Store, session_id: str) -> None:
        """Write all documents that a store holds of a session; its state uncut."""
        for collection in COLLECTIONS:
            found = store.load(session_id, collection)
            if collection == "state":
                for key, doc in found:
                    self.say(f"stored state '{key}'", doc, most=4_000)
            elif collection == "checkpoints":
                self.say("stored checkpoints", [[key, _unpacked(doc)] for key, doc in found])
            else:
                self.say(f"stored {collection}", [[key, doc] for key, doc in found])

    def attempt(self, title: str, work: Callable[[], Any]) -> Any:
        """Do something, write down what it gave or which error it raised, and return what it gave."""
        try:
            given = work()
        except CtxgcError as error:
            self.say(title, {"error": type(error).__name__, "said": str(error)})
            return None
        self.say(title, given)
        return given

    def text(self) -> str:
        """Return the whole account."""
        return "\n\n".join(self._parts) + "\n"


def _unpacked(value: Any) -> Any:
    """Return a checkpoint without what depends on the packer of the machine, or digests random ids."""
    if isinstance(value, str):
        return "<packed>" if len(value) > _LONG_TEXT and " " not in value else value
    if isinstance(value, Mapping):
        return {
            key: "<digest>" if key == "digest" else _unpacked(each) for key, each in value.items()
        }
    return [_unpacked(each) for each in value] if isinstance(value, list) else value


def _lines(key: str, value: Any, most: int) -> list[str]:
    if isinstance(value, list) and len(value) > 1:
        return [f"{key}:", *(f"  {_line(each, most)}" for each in value)]
    return [f"{key}: {_line(value, most)}"]


def _line(value: Any, most: int) -> str:
    return _cut(json.dumps(_clipped(value), ensure_ascii=False), most)


def _cut(text: str, most: int) -> str:
    """Return a text, or the first half of what it may have, with a digest of the whole."""
    if len(text) <= most:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{text[: most // 2]}… ({len(text)} characters, sha256 {digest})"


def _clipped(value: Any) -> Any:
    if isinstance(value, str):
        return _cut(value, _LONG_TEXT)
    if isinstance(value, Mapping):
        return {key: _clipped(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_clipped(each) for each in value]
    return value
