"""What pictures, sound, films and files cost: providers' own rules, or the most they can cost."""

from __future__ import annotations

import math
from typing import Literal, get_args

from ctxgc.errors import InputError

MediaKind = Literal["image", "audio", "video", "file"]
ImageRule = Literal["openai", "anthropic"]

ANTHROPIC_IMAGE_MOST = 4784
"""Larger pictures are scaled down to this many tokens (1,600 by models that see fewer pixels)."""

OPENAI_IMAGE_MOST = 85 + 170 * 8
"""A picture is scaled into 2048 x 768, which is eight tiles."""

_PER_SECOND = {"audio": 32, "video": 300}
_UNKNOWN_SECONDS = 60
_PER_PAGE = 4600
_UNKNOWN_PAGES = 10


def image_tokens(
    width: int | None = None, height: int | None = None, *, rule: ImageRule | None = None
) -> int:
    """Return what a picture costs at full detail; the most it can cost where size or rule is unknown."""
    for field, value in (("width", width), ("height", height)):
        _require_positive(field, value)
    if rule is None:
        return max(image_tokens(width, height, rule=each) for each in get_args(ImageRule))
    if rule not in get_args(ImageRule):
        raise InputError(
            f"rule: {rule!r} is not known", hint="use openai, anthropic or None", field="rule"
        )
    if width is None or height is None:
        return OPENAI_IMAGE_MOST if rule == "openai" else ANTHROPIC_IMAGE_MOST
    return _openai_tiles(width, height) if rule == "openai" else _anthropic_area(width, height)


def media_tokens(
    kind: MediaKind,
    width: int | None = None,
    height: int | None = None,
    *,
    rule: ImageRule | None = None,
    seconds: float | None = None,
    pages: int | None = None,
) -> int:
    """Return an upper bound for one medium: pictures by size, sound and films by seconds, files by pages."""
    if kind == "image":
        return image_tokens(width, height, rule=rule)
    if kind == "file":
        _require_positive("pages", pages)
        return _PER_PAGE * (_UNKNOWN_PAGES if pages is None else pages)
    if kind not in _PER_SECOND:
        raise InputError(
            f"kind: {kind!r} is not known", hint="use image, audio, video or file", field="kind"
        )
    _require_positive("seconds", seconds)
    return math.ceil(_PER_SECOND[kind] * (_UNKNOWN_SECONDS if seconds is None else seconds))


def _openai_tiles(width: int, height: int) -> int:
    shrink = min(1.0, 2048 / max(width, height))
    shrink = min(shrink, 768 / min(width, height))
    return 85 + 170 * _tiles(width * shrink) * _tiles(height * shrink)


def _tiles(side: float) -> int:
    # Rounded first: 768.0000000001 pixels are no reason for a third tile.
    return max(1, math.ceil(round(side, 3) / 512))


def _anthropic_area(width: int, height: int) -> int:
    return min(ANTHROPIC_IMAGE_MOST, math.ceil(width * height / 750))


def _require_positive(field: str, value: float | None) -> None:
    if value is not None and (isinstance(value, bool) or not 0 < value < math.inf):
        raise InputError(
            f"{field} must be above zero, not {value!r}",
            hint="leave it out if it is not known",
            field=field,
        )
