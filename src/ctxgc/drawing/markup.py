"""HTML as a type of its own, so that text cannot get into a page without being escaped."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import NewType

Html = NewType("Html", str)
"""Markup that is safe to put into a page: made by `text` and `tag`, never from a plain string."""

_UNFIT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


def text(value: object) -> Html:
    """Return a value as escaped text; characters that no page may hold become U+FFFD."""
    return Html(html.escape(_UNFIT.sub("\ufffd", str(value))))


def tag(name: str, *inside: Html, **attributes: object) -> Html:
    """Return an element.

    Attributes are escaped; one that is None is left out. `class_` means class, and an underscore
    within a name a hyphen (`text_anchor`).
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(_written(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{given}>{''.join(inside)}</{name}>")


def joined(parts: Iterable[Html], between: str = "") -> Html:
    """Return pieces of markup as one."""
    return Html(str(text(between)).join(parts))


def _written(value: object) -> object:
    """Shorten coordinates to a tenth of a pixel: pages stay small and the same everywhere."""
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else value
