"""What the judge looks for in a text: facts, plain words and lines.

These definitions are the lab's own. They share nothing with those that a policy decides by: a judge
with the same definitions would find every decision right.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from ctxgc.core import Format
from ctxgc.errors import MessageError
from ctxgc.tokens import counter_for, message_tokens
from ctxgc.wire import dump, parse

_LEAST_LINE = 20
_LEAST_WORD = 7
_LEAST_DIGITS = 4
_MOST_CHARS = 200

# A token may begin like a path (`/etc`, `~/x`, `../x`, `.env`) unless that is the end of something
# else (`</b>`, `//x`, `f().x`), and not inside an escape (`\nName` holds `Name`).
_TOKEN = re.compile(
    r"""(?<!\\)
    (?: (?<![\w/<:)\]}.]) (?: (?:~|\.\.?)?/ | \. ) )?
    \w+
    (?: (?: /(?:\.\.?/)*\.?-? | [.@] | --? ) \w+ )*
    """,
    re.VERBOSE,
)
_GREP_NUMBER = re.compile(r"(.+\.\w{1,6})-\d+")
_DIGIT = re.compile(r"\d")
_HUMP = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]{2}")
_DOTTED = re.compile(r"[^\W\d]\w*(?:\.\w+)+")
_HEX = re.compile(r"[0-9a-f]{8,}|[0-9A-F]{8,}")
_GUTTER = re.compile(r"^[^\S\n]*\d+[→\t]", re.MULTILINE)

Found = tuple[str, tuple[str, ...]]


def tokens_in(text: str) -> Iterator[tuple[Found, int]]:
    """Yield for each token its fact (or "") with its plain words, and where it begins."""
    for match in _TOKEN.finditer(text):
        found = read_token(match[0])
        if found[0] or found[1]:
            yield found, match.start()


def lines_in(text: str, least: int = _LEAST_LINE) -> Iterator[str]:
    """Yield the lines of `least` characters or more, without line numbers and outer blanks."""
    for line in without_gutters(text).split("\n"):
        bare = line.strip()
        if len(bare) >= least:
            yield bare


def without_gutters(text: str) -> str:
    """Return a text without the line numbers that a view of a file has."""
    return _GUTTER.sub("", text)


@lru_cache(maxsize=1 << 18)
def read_token(token: str) -> Found:
    """Return the fact that a token is, or "" and its plain words of seven letters or more.

    A fact keeps its spelling. A word is in lower case.
    """
    numbered = _GREP_NUMBER.fullmatch(token)
    bare = numbered[1] if numbered else token
    if _is_fact(bare):
        return bare, ()
    pieces = re.split(r"[^\w]+", bare) if len(bare) >= _LEAST_WORD else ()
    return "", tuple(p.lower() for p in pieces if len(p) >= _LEAST_WORD and p.isalpha())


def _is_fact(token: str) -> bool:
    if not 3 <= len(token) <= _MOST_CHARS:
        return False
    digits = _digits(token)
    if not any(map(str.isalpha, token)):
        return digits >= _LEAST_DIGITS
    if is_path(token) or _is_symbol(token):
        return True
    has_id = bool(digits) and "." not in token and len(token) >= 4
    return has_id or digits >= _LEAST_DIGITS


def _digits(token: str) -> int:
    """Return the digits of the longest number; `1.24.3` is one, `124-163` are two."""
    return max(len(_DIGIT.findall(piece)) for piece in re.split(r"[/@\-]", token))


def is_path(token: str) -> bool:
    """Return whether a token is a place in a tree of files."""
    # `and/or` is prose; `src/cli/run` and `/etc` are places.
    return "/" in token and (token[0] in "/~." or token.count("/") > 1)


def _is_symbol(token: str) -> bool:
    if "_" in token.strip("_") or (token.startswith("_") and len(token) > 3):
        return True
    if _HUMP.search(token) or _HEX.fullmatch(token):
        return True
    return len(token) >= 4 and any(map(_DOTTED.fullmatch, token.removeprefix(".").split("/")))


# -- The texts of a chat message


def texts_of(message: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the texts of a message in order: its content, and the values of its calls' arguments.

    The arguments are decoded from JSON, because escapes would become part of the identifiers next to
    them.
    """
    return tuple(text for text in (*_content(message.get("content")), *_calls(message)) if text)


def _content(content: object) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for part in content:
            if isinstance(part, Mapping):
                yield from _block(part)


def _block(part: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts of one block; calls and results are blocks in the messages API."""
    if isinstance(part.get("text"), str):
        yield part["text"]
    elif part.get("type") == "tool_result":
        yield from _content(part.get("content"))
    elif part.get("type") == "tool_use":
        yield str(part.get("name") or "")
        yield from values_of(part.get("input"))


def _calls(message: Mapping[str, Any]) -> Iterator[str]:
    for call in message.get("tool_calls") or ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            yield str(function.get("name") or "")
            yield from values_of(decoded(function.get("arguments")))


def decoded(arguments: object) -> object:
    """Return the arguments of a call as a JSON value; as they are if they are not JSON."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def values_of(value: object) -> Iterator[str]:
    """Yield the texts and numbers of a JSON value in order."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str(text):
                yield text
            case bool() | None:
                continue
            case int() | float() as number:
                yield str(number)
            case list(items):
                waiting.extend(reversed(items))
            case dict(fields):
                waiting.extend(reversed(fields.values()))


# -- The tokens of a chat message, counted as a session counts them


def message_weight(message: dict[str, Any]) -> int:
    """Return the tokens of one message; a malformed one counts as its JSON text."""
    counter = counter_for()
    try:
        return message_tokens(parse(message, shape_of(message), "m"), counter)
    except MessageError:
        return counter.count(dump(message))


def shape_of(message: Mapping[str, Any]) -> Format:
    """Return the format of one message: blocks of calls and results are the messages API's."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else ()
    kinds = {block.get("type") for block in blocks if isinstance(block, Mapping)}
    return "anthropic" if kinds & {"tool_use", "tool_result", "thinking"} else "openai"


def total_weight(messages: Iterable[dict[str, Any]]) -> int:
    """Return the tokens of several messages."""
    return sum(map(message_weight, messages))
