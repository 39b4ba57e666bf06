from __future__ import annotations

import base64
import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.wire.blocks import MOST_OF_AN_IMAGE, describe, image_tokens, media_part

sides = st.integers(1, 20_000)


def _png(width: int, height: int) -> str:
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)
    return base64.b64encode(head + bytes(9)).decode()


def _gif(width: int, height: int) -> str:
    return base64.b64encode(b"GIF89a" + struct.pack("<HH", width, height) + bytes(2)).decode()


def _jpeg(width: int, height: int) -> str:
    app = b"\xff\xe0" + struct.pack(">H", 6) + b"JFIF"
    frame = b"\xff\xc0" + struct.pack(">HBHH", 17, 8, height, width) + bytes(12)
    return base64.b64encode(b"\xff\xd8" + app + frame).decode()


@pytest.mark.parametrize("make", [_png, _gif, _jpeg])
def test_an_image_weighs_by_its_area(make: Callable[[int, int], str]) -> None:
    assert image_tokens(make(1, 1)) == 85 + 170
    assert image_tokens(make(1500, 1000)) == 2000
    assert image_tokens(make(15_000, 10_000)) == MOST_OF_AN_IMAGE


@pytest.mark.parametrize(
    ("size", "tokens"),
    [
        ((1, 1), 255),
        ((512, 512), 350),
        ((512, 300), 255),
        ((1000, 1000), 1334),
        ((1024, 1024), 1399),
        ((4096, 60), 765),
        ((9000, 9000), 4784),
    ],
)
def test_an_image_costs_what_the_dearer_of_tiles_and_area_says(
    size: tuple[int, int], tokens: int
) -> None:
    assert image_tokens(_png(*size)) == tokens


@given(sides, sides)
def test_no_image_costs_more_than_one_of_unknown_size(width: int, height: int) -> None:
    assert image_tokens(_png(width, height)) <= MOST_OF_AN_IMAGE


@given(sides, sides)
def test_turning_an_image_does_not_change_its_price(width: int, height: int) -> None:
    assert image_tokens(_png(width, height)) == image_tokens(_png(height, width))


@pytest.mark.parametrize(
    "payload", ["https://example.com/a.png", "file-123", "", "%%%", _png(0, 9)]
)
def test_an_image_of_unknown_size_weighs_the_usual_bound(payload: str) -> None:
    assert image_tokens(payload) == MOST_OF_AN_IMAGE


def test_a_hostile_jpeg_header_ends() -> None:
    zero = base64.b64encode(b"\xff\xd8" + b"\xff\xe0\x00\x00" * 9_000).decode()
    assert image_tokens(zero) == MOST_OF_AN_IMAGE


def test_different_media_have_different_names() -> None:
    part = media_part("image", f"data:image/png;base64,{_png(1, 1)}", ("content", 0))
    other = media_part("image", _png(2, 1), ("content", 0), "image/png")
    assert part.text.startswith("[image image/png ")
    assert part.text != other.text
    assert part == media_part("image", _png(1, 1), ("content", 0), "image/png")


def test_a_text_file_weighs_what_its_text_does() -> None:
    assert describe("file", "x" * 4_000_000, "text/plain")[1] == 750_000


def test_media_is_never_counted_as_nothing() -> None:
    assert describe("document", "x" * 4_000_000, "application/pdf")[1] == 150_000
    assert describe("file", "file-1")[1] == describe("audio", "")[1] == 1_600
