"""TOML configuration files, edited as text: one table of ours is added at the end, or removed."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from ctxgc.errors import ConfigError

_HEADER = re.compile(r"^[ \t]*\[", re.MULTILINE)


def parse(text: str, where: str) -> dict[str, Any]:
    """Return the value of a TOML text.

    Raises:
        ConfigError: it is damaged.
    """
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"{where} is not TOML: {error}", hint="correct it by hand, then try again", path=where
        ) from None


def put_table(text: str, path: Sequence[str], values: Mapping[str, Any], where: str) -> str:
    """Return a text with a table at its end; it replaces one of the same name.

    Raises:
        ConfigError: the text is damaged, or conflicts with the table.
    """
    parse(text, where)
    rest = drop_table(text, path, where)
    lines = [f"[{'.'.join(path)}]", *(f"{key} = {_render(value)}" for key, value in values.items())]
    between = "" if not rest else "\n" if rest.endswith("\n") else "\n\n"
    new = f"{rest}{between}{chr(10).join(lines)}\n"
    parse(new, where)
    return new


def drop_table(text: str, path: Sequence[str], where: str) -> str:
    """Return a text without a table, its sub-tables and the blank line before it."""
    parse(text, where)
    name = r"[ \t]*\.[ \t]*".join(rf"(?:{re.escape(part)}|\"{re.escape(part)}\")" for part in path)
    ours = re.compile(rf"^[ \t]*\[[ \t]*{name}[ \t]*(?:\.[^\n]*)?\][^\n]*\n?", re.MULTILINE)
    while (found := ours.search(text)) is not None:
        following = _HEADER.search(text, found.end())
        start = found.start()
        if following is None and (text[:start].endswith("\n\n") or text[:start] == "\n"):
            start -= 1
        text = text[:start] + (text[following.start() :] if following else "")
    parse(text, where)
    return text


def _render(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_render, value))}]"
    return json.dumps(value, ensure_ascii=False)
