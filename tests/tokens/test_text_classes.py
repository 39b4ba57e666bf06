from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.tokens.estimated import CLASSES, SAMPLE_CHARS, Features, classify, features
from tests.tokens.samples import KINDS, long_text

any_text = st.text(st.characters(codec=None, exclude_categories=()))


@pytest.mark.parametrize("kind", ["prose", "code", "log", "cjk"])
def test_each_kind_of_text_is_recognised(kind: str) -> None:
    assert classify(long_text(kind, 5000)) == kind


def test_json_is_recognised_by_its_bracket_and_its_keys() -> None:
    assert classify('[{"id": 1, "ok": null}]') == "json"
    assert classify("[see the note below]") == "code"


def test_nothing_is_prose() -> None:
    assert classify("") == "prose"


@given(any_text)
def test_every_text_has_a_class(text: str) -> None:
    assert classify(text) in CLASSES


def test_only_the_start_is_looked_at() -> None:
    assert classify("word " * SAMPLE_CHARS + long_text("cjk", 100_000)) == "prose"


def test_features_count_each_sort_of_character() -> None:
    assert features("Ab1\t23\n\r\0\x7f" + "=" * 8 + "垃圾é😀") == Features(
        digits=3, capitals=1, breaks=3, controls=2, runs=8, cjk=2, script=2
    )


@given(any_text, any_text)
def test_features_of_joined_texts_add_up_but_for_runs(left: str, right: str) -> None:
    both = features(left + right)._replace(runs=0)
    parts = zip(features(left)._replace(runs=0), features(right)._replace(runs=0), strict=True)
    assert both == Features(*map(sum, parts))


def test_the_kinds_of_the_samples_are_the_classes() -> None:
    assert set(KINDS) == set(CLASSES)
