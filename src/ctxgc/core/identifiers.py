"""Identifiers in text: paths, symbols, ids and long numbers, the words that carry references.

Plain words are not identifiers. A token is one when it has an inner mark (underscore, dot, slash,
colon, dash between word characters), a digit among letters, a capital inside, or four digits or more.
"""

from __future__ import annotations

import re
from itertools import islice

# Possessive runs keep the scan linear on hostile text (a megabyte of "a.a.a.a").
_TOKEN = re.compile(r"[A-Za-z0-9_$~@][\w$@]*+(?:[./:\\#-]++[\w$@]++)*+")
_ORDINARY = re.compile(r"[A-Za-z]?[a-z]+(?:-[a-z]+)*|[A-Z]+|\d{1,3}")

MAX_LENGTH = 200
MAX_PER_TEXT = 1024
SCAN_LIMIT = 262_144


def is_identifier(token: str) -> bool:
    """Tell whether a token carries a reference rather than being an ordinary word or small number."""
    if not 3 <= len(token) <= MAX_LENGTH:
        return False
    # Most tokens are plain words, and this tells them four times faster than the pattern.
    if token.isalpha() and token.islower() and token.isascii():
        return False
    # So does this most of the others: no ordinary token has a mark but a dash.
    if "-" not in token and not token.isalnum():
        return True
    return _ORDINARY.fullmatch(token) is None


def identifiers(text: str, limit: int = MAX_PER_TEXT) -> list[str]:
    """Return the distinct identifiers of a text in the order of their first appearance.

    At most `limit` are returned and at most `SCAN_LIMIT` characters read, so the work is bounded.
    """
    distinct = dict.fromkeys(tokens(text))
    return list(islice(filter(is_identifier, distinct), limit))


def tokens(text: str) -> list[str]:
    """Return the tokens of a text in order, plain words and numbers among them."""
    found: list[str] = _TOKEN.findall(text, 0, SCAN_LIMIT)
    return found


def looks_like_path(token: str) -> bool:
    """Tell whether an identifier is a file path: it has a slash, or a short extension at its end."""
    if "/" in token:
        return not token.startswith("//")
    stem, dot, extension = token.rpartition(".")
    return bool(stem and dot) and extension.isalnum() and len(extension) <= 5 and not stem.isdigit()
