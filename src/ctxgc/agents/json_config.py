"""JSON configuration files, edited as text so that what is not ours keeps its bytes.

Comments and trailing commas are understood, because editors allow them in these files. An edit returns
the new text; a text that is not JSON is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from json import JSONDecoder
from typing import Any, Literal

from ctxgc.errors import ConfigError

# -- The tree of a text, with the place of each value


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


def _parse_tree(text: str) -> Node | None:
    """Return the tree of a text; None if it holds only blanks and comments.

    Raises:
        ValueError: it is not JSON.
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


# -- Edits


Key = str
_INDENT = "  "


def parse(text: str, where: str) -> Any:
    """Return the value of a JSON text with comments; an empty text is an empty object.

    Raises:
        ConfigError: it is damaged, or not an object.
    """
    tree = _tree(text, where)
    if tree is not None and tree.kind != "object":
        raise ConfigError(
            f"{where} is not a JSON object", hint="correct it by hand, then try again", path=where
        )
    return tree.value if tree is not None else {}


def put(text: str, path: Sequence[Key], value: Any, where: str = "the file") -> str:
    """Return a text with a value at a path of keys; missing objects are created."""
    tree = _tree(text, where)
    if tree is None:
        return f"{_render(_nested(path, value), '', _INDENT)}\n"
    node, depth = _deepest(tree, path)
    rest = path[depth:]
    if not rest:
        unit = _unit(text)
        return text[: node.start] + _render(value, _indent_at(text, node), unit) + text[node.end :]
    if node.kind != "object":
        raise ConfigError(
            f"{where}: '{'.'.join(path[:depth])}' is not an object",
            hint="correct it by hand, then try again",
            path=where,
        )
    return _insert(text, node, f"{json.dumps(rest[0])}: ", _nested(rest[1:], value))


def append(text: str, path: Sequence[Key], value: Any, where: str = "the file") -> str:
    """Return a text with one more item at the end of the list at a path; a missing list is created."""
    tree = _tree(text, where)
    node, depth = _deepest(tree, path) if tree is not None else (None, 0)
    if node is None or depth < len(path):
        return put(text, path, [value], where)
    if node.kind != "array":
        raise ConfigError(
            f"{where}: '{'.'.join(path)}' is not a list",
            hint="correct it by hand, then try again",
            path=where,
        )
    return _insert(text, node, "", value)


def drop(text: str, path: Sequence[Key | int], where: str = "the file") -> str:
    """Return a text without the member or item at a path; unchanged if there is none."""
    tree = _tree(text, where)
    if tree is None:
        return text
    parent, depth = _deepest(tree, path[:-1])
    if depth < len(path) - 1:
        return text
    found = [n for n, (key, _) in enumerate(parent.children) if key == path[-1]]
    return _cut(text, parent, found[-1]) if found else text


def _tree(text: str, where: str) -> Node | None:
    try:
        return _parse_tree(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"{where} is not JSON: {error}", hint="correct it by hand, then try again", path=where
        ) from None


def _deepest(node: Node, path: Sequence[Key | int]) -> tuple[Node, int]:
    """Return the deepest existing node on a path, and its depth."""
    for depth, step in enumerate(path):
        found = [child for key, child in node.children if key == step]
        if not found:
            return node, depth
        node = found[-1]
    return node, len(path)


def _nested(path: Sequence[Key], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _insert(text: str, node: Node, label: str, value: Any) -> str:
    unit, outer = _unit(text), _indent_at(text, node)
    inner = outer + unit
    new = f"{label}{_render(value, inner, unit)}"
    if not node.children:
        body = text[node.start + 1 : node.end - 1].rstrip()
        return f"{text[: node.start + 1]}{body}\n{inner}{new}\n{outer}{text[node.end - 1 :]}"
    last = node.children[-1][1].end
    # A trailing comma stays, after the new last member.
    return f"{text[:last]},\n{inner}{new}{text[last:]}"


def _cut(text: str, parent: Node, place: int) -> str:
    starts = parent.starts
    if place + 1 < len(starts):
        return text[: starts[place]] + text[starts[place + 1] :]
    end = parent.children[place][1].end
    if place:
        return text[: parent.children[place - 1][1].end] + text[end:]
    head = text[: starts[0]].rstrip()  # a comment before the member stays
    between = "" if len(head) == parent.start + 1 else f"\n{_indent_at(text, parent)}"
    return head + between + text[parent.end - 1 :]


def _render(value: Any, indent: str, unit: str) -> str:
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", f"\n{indent}")


def _unit(text: str) -> str:
    found = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    return found[1] if found else _INDENT


def _indent_at(text: str, node: Node) -> str:
    line = text.rfind("\n", 0, node.start) + 1
    found = re.match(r"[ \t]*", text[line : node.start])
    return found[0] if found else ""
