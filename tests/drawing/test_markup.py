"""No text gets into a page as markup."""

from __future__ import annotations

from xml.etree import ElementTree

from hypothesis import example, given
from hypothesis import strategies as st

from ctxgc.drawing import joined, tag
from ctxgc.drawing.svg import text


def test_markup_in_a_text_is_shown_and_not_obeyed() -> None:
    assert text("<b>&\"'") == "&lt;b&gt;&amp;&quot;&#x27;"


def test_an_element_has_its_attributes_and_leaves_out_what_is_none() -> None:
    drawn = tag("a", text("x"), class_="c", text_anchor="end", href=None, x=1.25, y=2.0, n=3)
    assert drawn == '<a class="c" text-anchor="end" x="1.2" y="2" n="3">x</a>'


def test_pieces_are_joined_with_escaped_text() -> None:
    assert joined([text("a"), text("b")], " & ") == "a &amp; b"


@example("\r\n", "\r\n")
@given(st.text(st.characters(codec=None)), st.text(st.characters(codec=None)))
def test_any_text_and_attribute_parses_back_to_itself_less_what_no_page_may_hold(
    inside: str, value: str
) -> None:
    drawn = tag("p", text(inside), title=value)
    drawn.encode("utf-8")
    parsed = ElementTree.fromstring(drawn)
    assert (parsed.text or "") == _fit(inside)
    assert len(parsed.get("title") or "") == len(_fit(value))


def _fit(words: str) -> str:
    """Return what a parser makes of a text: it reads each kind of line end as a newline."""
    shown = "".join("\ufffd" if _is_unfit(ord(letter)) else letter for letter in words)
    return shown.replace("\r\n", "\n").replace("\r", "\n")


def _is_unfit(code: int) -> bool:
    control = code < 32 and code not in (9, 10, 13)
    return (
        control or 127 <= code < 160 or 0xD800 <= code < 0xE000 or 0xFDD0 <= code < 0xFDF0
        or code in (0xFFFE, 0xFFFF)
    )  # fmt: skip
