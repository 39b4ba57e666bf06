"""JSON files of others, edited as text: what is not ours keeps its bytes.

Comments and trailing commas are understood, because editors allow them in these files. An edit returns
the new text; a text that is no JSON is refused and nothing is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from ctxgc.agents.json_tree import Node, parse_tree
from ctxgc.errors import ConfigError

Key = str
INDENT = "  "


def parse(text: str, where: str) -> Any:
    """Return the value of a JSON text with comments; an empty text is an empty object.

    Raises:
        ConfigError: it is damaged, or no object.
    """
    tree = _tree(text, where)
    if tree is not None and tree.kind != "object":
        raise ConfigError(
            f"{where} holds no JSON object", hint="correct it by hand, then call again", path=where
        )
    return tree.value if tree is not None else {}


def put(text: str, path: Sequence[Key], value: Any, where: str = "the file") -> str:
    """Return a text with a value at a path of keys; what is missing on the way is made."""
    tree = _tree(text, where)
    if tree is None:
        return f"{_render(_nested(path, value), '', INDENT)}\n"
    node, depth = _deepest(tree, path)
    rest = path[depth:]
    if not rest:
        unit = _unit(text)
        return text[: node.start] + _render(value, _indent_at(text, node), unit) + text[node.end :]
    if node.kind != "object":
        raise ConfigError(
            f"{where}: '{'.'.join(path[:depth])}' is no object",
            hint="correct it by hand, then call again",
            path=where,
        )
    return _insert(text, node, f"{json.dumps(rest[0])}: ", _nested(rest[1:], value))


def append(text: str, path: Sequence[Key], value: Any, where: str = "the file") -> str:
    """Return a text with one more item at the end of the list at a path; a missing list is made."""
    tree = _tree(text, where)
    node, depth = _deepest(tree, path) if tree is not None else (None, 0)
    if node is None or depth < len(path):
        return put(text, path, [value], where)
    if node.kind != "array":
        raise ConfigError(
            f"{where}: '{'.'.join(path)}' is no list",
            hint="correct it by hand, then call again",
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
        return parse_tree(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"{where} is no JSON: {error}", hint="correct it by hand, then call again", path=where
        ) from None


def _deepest(node: Node, path: Sequence[Key | int]) -> tuple[Node, int]:
    """Return the last node there is on a path, and how many steps lead to it."""
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
    # A trailing comma stays where it is, behind the new last member.
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
    return found[1] if found else INDENT


def _indent_at(text: str, node: Node) -> str:
    line = text.rfind("\n", 0, node.start) + 1
    found = re.match(r"[ \t]*", text[line : node.start])
    return found[0] if found else ""
