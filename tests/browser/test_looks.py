"""The eyes see what they are there to see."""

from __future__ import annotations

from tests.browser.conftest import PageOf
from tests.browser.looks import (
    clipped_texts,
    faint_texts,
    narrower_charts,
    scrolls_sideways,
    small_texts,
)

BAD = """<!DOCTYPE html><title>x</title><body style="background:#fff">
<p style="color:#bbb">pale</p><p style="color:#333">dark</p>
<svg width="100" viewBox="0 0 100 40"><text x="10" y="20">in</text>
<text x="80" y="20">reaching out</text></svg>
<figure><svg class="chart" aria-label="half" width="50" viewBox="0 0 100 40">
<text x="10" y="20" font-size="12">tiny</text></svg></figure>
<div style="width:5000px">wide</div></body>"""


def test_pale_clipped_small_narrow_and_wide_things_are_found(page_of: PageOf) -> None:
    shown = page_of(BAD)
    assert faint_texts(shown) == ["pale"]
    assert clipped_texts(shown) == ["reaching out"]
    assert scrolls_sideways(shown)
    assert narrower_charts(shown) == ["half"]
    assert small_texts(shown) == ["tiny"]
