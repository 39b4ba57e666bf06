from __future__ import annotations

import base64
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.errors import InputError
from ctxgc.tokens import (
    CharCounter,
    CountingCache,
    EstimatedCounter,
    ExactCounter,
    TokenCounter,
    UpperBoundCounter,
)
from ctxgc.tokens.estimated import PROFILES
from tests.tokens.samples import KINDS, TABLE, Sample, long_text

FAMILIES = {
    "llama": ("llama3", "llama4"),
    "qwen": ("qwen",),
    "deepseek": ("deepseek",),
    "mistral": ("tekken", "mistral_v3", "llama2"),
    "claude-3": ("claude2",),
    "claude": ("claude2",),
    "unknown": tuple(TABLE[0].counts),
}
MEASURED_ON_CLAUDE = {"prose": 1.56, "code": 1.55, "log": 1.34, "json": 1.33, "cjk": 1.42}
HOSTILE = {
    "letters": "a" * 1_000_000,
    "blanks": " " * 1_000_000,
    "tabs": "\t" * 1_000_000,
    "base64": base64.b64encode(random.Random(1).randbytes(100_000)).decode(),
    "CJK": "\u5783" * 200_000,
    "surrogates": "\ud800" * 200_000,
    "NUL": "\0" * 200_000,
    "special": "<|endoftext|>" * 10_000,
}

any_text = st.text(st.characters(codec=None, exclude_categories=()), max_size=200)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("sample", TABLE, ids=lambda sample: sample.name)
def test_no_text_is_under_the_truth_by_more_than_two_percent(family: str, sample: Sample) -> None:
    truth = max(sample.counts[name] for name in FAMILIES[family])
    assert UpperBoundCounter(family).count(sample.text) >= 0.98 * truth


@pytest.mark.parametrize("kind", KINDS)
def test_the_bounds_of_current_claude_models_stay_above_what_was_measured(kind: str) -> None:
    text = long_text(kind, 50_000)
    measured = ExactCounter().count(text) * MEASURED_ON_CLAUDE[kind]
    assert measured <= UpperBoundCounter("claude").count(text) <= 1.5 * measured
    assert measured <= UpperBoundCounter("unknown").count(text)


@given(any_text)
def test_an_unknown_model_is_never_counted_below_the_public_encodings(text: str) -> None:
    bound = UpperBoundCounter("unknown").count(text)
    truth = max(ExactCounter(name).count(text) for name in ("o200k_base", "cl100k_base"))
    assert bound >= 0.98 * truth
    assert (bound == 0) == (text == "")


@given(any_text)
def test_no_bound_exceeds_the_bytes_that_a_tokenizer_sees(text: str) -> None:
    size = len(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode())
    assert all(UpperBoundCounter(name).count(text) <= size + 2 for name in PROFILES)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_gets_a_bound_above_its_exact_count(text: str) -> None:
    assert EstimatedCounter().count(text) >= ExactCounter().count(text)


def test_a_text_of_many_pieces_is_judged_piece_by_piece() -> None:
    counter = UpperBoundCounter("claude")
    prose, cjk = long_text("prose", 65_536), long_text("cjk", 65_536)
    assert counter.count(prose + cjk) == pytest.approx(
        counter.count(prose) + counter.count(cjk), rel=0.001
    )


def test_it_is_labelled_as_an_estimate() -> None:
    counter = EstimatedCounter("claude")
    assert isinstance(counter, TokenCounter)
    assert (counter.name, counter.exact, counter.scale) == (
        "claude estimate over o200k_base",
        False,
        1.0,
    )


def test_calibration_learns_the_factor_that_the_provider_reports() -> None:
    counter = EstimatedCounter("claude")
    texts = [long_text("prose", 20_000, seed) for seed in range(6)]
    before = [counter.count(text) for text in texts]
    for text in texts:
        assert counter.calibrate(counter.count(text), round(ExactCounter().count(text) * 1.3))
    after = [counter.count(text) for text in texts]
    truth = [ExactCounter().count(text) * 1.3 for text in texts]
    assert all(0.98 * t <= a <= 1.05 * t < b for t, a, b in zip(truth, after, before, strict=True))


@given(st.lists(st.floats(1.0, 1.7), min_size=1, max_size=32))
def test_after_calibration_no_sample_seen_is_under_by_more_than_two_percent(
    factors: list[float],
) -> None:
    counter = EstimatedCounter("claude", bound=_Words())
    samples = [("word " * 500 * (i % 3 + 1), factor) for i, factor in enumerate(factors)]
    reports = [(text, round(len(text.split()) * factor)) for text, factor in samples]
    for text, reported in reports:
        assert counter.calibrate(counter.count(text), reported)
    assert all(counter.count(text) >= 0.98 * reported for text, reported in reports)


class _Words:
    name = "words"
    exact = False

    def count(self, text: str) -> int:
        return len(text.split())


def test_a_text_is_bounded_once_however_often_the_scale_changes() -> None:
    asked: list[str] = []

    class Spy(CharCounter):
        def count(self, text: str) -> int:
            asked.append(text)
            return super().count(text)

    counter = EstimatedCounter(bound=CountingCache(UpperBoundCounter(base=Spy())))
    for _ in range(5):
        counter.calibrate(counter.count("some words " * 100), 500)
    assert len(asked) == 1


def test_counters_calibrate_apart() -> None:
    one, other = EstimatedCounter("claude"), EstimatedCounter("claude")
    one.calibrate(1000, 2000)
    assert (one.scale, other.scale) == (2.0, 1.0)


@pytest.mark.parametrize("make", [EstimatedCounter, UpperBoundCounter])
def test_an_unknown_profile_is_refused_with_the_known_ones(make: type) -> None:
    with pytest.raises(InputError, match="profile: 'gpt' is not known") as raised:
        make("gpt")
    assert "unknown, claude" in raised.value.hint


@pytest.mark.parametrize("sample", TABLE, ids=lambda sample: sample.name)
def test_characters_alone_bound_the_public_encodings(sample: Sample) -> None:
    truth = max(sample.counts["o200k_base"], sample.counts["cl100k_base"])
    assert CharCounter().count(sample.text) >= 0.98 * truth


@given(any_text)
def test_characters_alone_give_any_string_a_count(text: str) -> None:
    count = CharCounter().count(text)
    assert (count == 0) == (text == "")
    assert 0 <= count <= 3 * len(text.encode("utf-8", "replace"))


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_characters_alone_bound_hostile_text(text: str) -> None:
    assert CharCounter().count(text) >= 0.98 * ExactCounter().count(text)


@pytest.mark.parametrize("counter", [CharCounter(), UpperBoundCounter(), EstimatedCounter()])
def test_what_is_no_string_is_refused(counter: TokenCounter) -> None:
    with pytest.raises(InputError, match="text must be a string, got bytes"):
        counter.count(b"bytes")  # type: ignore[arg-type]
