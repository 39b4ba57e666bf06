"""Where the values of a JSON text stand, with comments and trailing commas passed over."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from json import JSONDecoder
from typing import Any, Literal

_DECODER = JSONDecoder()
_BLANK = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_SCALAR = re.compile(r"-?\d[\d.eE+-]*|true|false|null")


@dataclass(slots=True)
class Node:
    """A value of a JSON text: its kind, its span, and the values in it by key or place.

    `starts` are the places where each member begins, its key included.
    """

    kind: Literal["object", "array", "scalar"]
    start: int
    end: int = 0
    value: Any = None
    children: list[tuple[str | int, Node]] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)


def parse_tree(text: str) -> Node | None:
    """Return the tree of a text; None when it holds nothing but blanks and comments.

    Raises:
        ValueError: it is no JSON.
    """
    start = _skip(text, 0)
    if start == len(text):
        return None
    node = _value(text, start)
    if _skip(text, node.end) != len(text):
        raise ValueError(f"something follows its end at character {node.end}")
    return node


def _value(text: str, at: int) -> Node:
    mark = text[at : at + 1]
    if mark == "{":
        return _members(text, Node("object", at, value={}))
    if mark == "[":
        return _members(text, Node("array", at, value=[]))
    if mark == '"':
        value, end = _DECODER.raw_decode(text, at)
        return Node("scalar", at, end, value)
    found = _SCALAR.match(text, at)
    if found is None:
        raise ValueError(f"no value at character {at}")
    value, _ = _DECODER.raw_decode(found[0])
    return Node("scalar", at, found.end(), value)


def _members(text: str, node: Node) -> Node:
    close = "}" if node.kind == "object" else "]"
    at = _skip(text, node.start + 1)
    while text[at : at + 1] != close:
        node.starts.append(at)
        key: str | int = len(node.children)
        if node.kind == "object":
            key, at = _key(text, at)
        child = _value(text, at)
        node.children.append((key, child))
        at = _skip(text, child.end)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        elif text[at : at + 1] != close:
            raise ValueError(f"'{close}' or ',' is missing at character {at}")
    node.end = at + 1
    pairs = [(key, child.value) for key, child in node.children]
    node.value = dict(pairs) if node.kind == "object" else [value for _, value in pairs]
    return node


def _key(text: str, at: int) -> tuple[str, int]:
    if text[at : at + 1] != '"':
        raise ValueError(f"a key is missing at character {at}")
    key, end = _DECODER.raw_decode(text, at)
    end = _skip(text, end)
    if text[end : end + 1] != ":":
        raise ValueError(f"':' is missing at character {end}")
    return key, _skip(text, end + 1)


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at
