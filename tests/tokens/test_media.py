from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.errors import InputError
from ctxgc.tokens import image_tokens, media_tokens
from ctxgc.tokens.media import ANTHROPIC_IMAGE_MOST, OPENAI_IMAGE_MOST

sides = st.integers(1, 20_000)


@pytest.mark.parametrize(
    ("size", "tokens"),
    [
        ((1, 1), 255),
        ((512, 512), 255),
        ((1024, 1024), 765),
        ((2048, 4096), 1105),
        ((8192, 1024), 765),
    ],
)
def test_openai_counts_tiles(size: tuple[int, int], tokens: int) -> None:
    assert image_tokens(*size, rule="openai") == tokens


@pytest.mark.parametrize(
    ("size", "tokens"),
    [
        ((1, 1), 1),
        ((200, 200), 54),
        ((1000, 1000), 1334),
        ((1092, 1092), 1590),
        ((9000, 9000), 4784),
    ],
)
def test_anthropic_counts_area(size: tuple[int, int], tokens: int) -> None:
    assert image_tokens(*size, rule="anthropic") == tokens


def test_a_picture_of_unknown_size_costs_the_most_that_its_rule_allows() -> None:
    assert image_tokens(rule="openai") == OPENAI_IMAGE_MOST
    assert image_tokens(rule="anthropic") == ANTHROPIC_IMAGE_MOST
    assert image_tokens(width=10) == image_tokens(height=10) == media_tokens("image") == 4784


@given(sides, sides)
def test_no_picture_costs_more_than_one_of_unknown_size(width: int, height: int) -> None:
    assert image_tokens(width, height, rule="openai") <= OPENAI_IMAGE_MOST
    assert image_tokens(width, height, rule="anthropic") <= ANTHROPIC_IMAGE_MOST
    either = max(image_tokens(width, height, rule=r) for r in ("openai", "anthropic"))
    assert media_tokens("image", width, height) == either


@given(sides, sides)
def test_turning_a_picture_does_not_change_its_price(width: int, height: int) -> None:
    assert image_tokens(width, height) == image_tokens(height, width)


def test_sound_films_and_files_go_by_length_or_a_generous_default() -> None:
    assert media_tokens("audio", seconds=10.1) == 324
    assert media_tokens("video", seconds=2) == 600
    assert media_tokens("file", pages=3) == 13_800
    assert [media_tokens(kind) for kind in ("audio", "video", "file")] == [1920, 18_000, 46_000]


@pytest.mark.parametrize("bad", [0, -1, math.inf, math.nan, True])
def test_impossible_sizes_are_refused(bad: int) -> None:
    for field, call in {
        "width": lambda: image_tokens(bad, 10),
        "height": lambda: image_tokens(10, bad),
        "seconds": lambda: media_tokens("audio", seconds=bad),
        "pages": lambda: media_tokens("file", pages=bad),
    }.items():
        with pytest.raises(InputError, match=f"{field} must be above zero") as raised:
            call()
        assert raised.value.details == {"field": field}


def test_unknown_kinds_and_rules_are_refused() -> None:
    with pytest.raises(InputError, match="kind: 'smell' is not known"):
        media_tokens("smell")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="rule: 'gemini' is not known"):
        image_tokens(rule="gemini")  # type: ignore[arg-type]
