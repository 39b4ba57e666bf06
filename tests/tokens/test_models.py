from __future__ import annotations

import pytest

from ctxgc.errors import InputError
from ctxgc.tokens import EstimatedCounter, counter_for, window_of

O200K, CL100K = "o200k_base", "cl100k_base"
EXPECTED = {
    None: O200K,
    "gpt-4o": O200K,
    "gpt-4o-mini-2024-07-18": O200K,
    "chatgpt-4o-latest": O200K,
    "gpt-4.1-nano": O200K,
    "gpt-4.5-preview": O200K,
    "gpt-5": O200K,
    "gpt-5.2-codex": O200K,
    "GPT-5-Mini": O200K,
    "gpt-oss-120b": O200K,
    "o1": O200K,
    "o3-mini": O200K,
    "o4-mini-2025-04-16": O200K,
    "openai/gpt-4o": O200K,
    "azure/gpt-4o-prod": O200K,
    "ft:gpt-4o-mini:org::id": O200K,
    "gpt-4": CL100K,
    "gpt-4-turbo": CL100K,
    "gpt-4-0613": CL100K,
    "gpt-3.5-turbo": CL100K,
    "gpt-35-turbo": CL100K,
    "text-embedding-3-small": CL100K,
    "claude-opus-4-7": "claude",
    "claude-sonnet-4-5-20250929": "claude",
    "claude-opus-5": "claude",
    "anthropic/claude-haiku-4.5": "claude",
    "us.anthropic.claude-sonnet-4-20250514-v1:0": "claude",
    "claude": "claude",
    "claude-3-5-sonnet-20241022": "claude-3",
    "anthropic.claude-v2:1": "claude-3",
    "claude-instant-1.2": "claude-3",
    "meta-llama/Llama-3.3-70B-Instruct": "llama",
    "llama4-maverick": "llama",
    "llama-2-70b-chat": "mistral",
    "codellama-34b": "mistral",
    "qwen3-coder": "qwen",
    "Qwen/QwQ-32B": "qwen",
    "deepseek-chat": "deepseek",
    "deepseek-r1-distill-qwen-32b": "unknown",
    "mistral-large-latest": "mistral",
    "mistralai/Devstral-Small": "mistral",
    "open-mixtral-8x7b": "mistral",
    "gemini-3-pro": "unknown",
    "grok-4": "unknown",
    "kimi-k2": "unknown",
    "gpt-2": "unknown",
    "gpt-45": "unknown",
    "gpt-6": "unknown",
    "o10": "unknown",
    "foo1": "unknown",
    "": "unknown",
}


@pytest.mark.parametrize(("model", "expected"), EXPECTED.items())
def test_each_model_gets_its_encoding_or_its_profile(model: str | None, expected: str) -> None:
    counter = counter_for(model)
    if expected in {O200K, CL100K}:
        assert (counter.name, counter.exact) == (expected, True)
    else:
        assert (counter.name, counter.exact) == (f"{expected} estimate over o200k_base", False)


def test_exact_counters_are_shared_and_estimates_are_their_owners() -> None:
    assert counter_for("gpt-4o") is counter_for("o3") is counter_for()
    one, other = counter_for("claude-opus-5"), counter_for("claude-opus-5")
    assert isinstance(one, EstimatedCounter)
    assert isinstance(other, EstimatedCounter)
    one.calibrate(1000, 2000)
    assert (one.scale, other.scale) == (2.0, 1.0)


def test_estimates_of_one_family_share_what_was_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "counted for one session, known to the next"
    first = counter_for("claude-opus-5").count(text)
    monkeypatch.setattr("ctxgc.tokens.estimated.classify", lambda _: pytest.fail("counted again"))
    assert counter_for("claude-sonnet-5").count(text) == first


@pytest.mark.parametrize("model", [7, b"gpt-4o", ["gpt-4o"]])
def test_what_is_no_name_is_refused(model: object) -> None:
    with pytest.raises(InputError, match="model must be a name or None"):
        counter_for(model)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("claude-sonnet-4-5", 200_000), ("anthropic/claude-3-5-haiku", 200_000),
        ("claude-2.1", 200_000), ("claude-2.0", 100_000), ("claude-sonnet-4-5[1m]", 1_000_000),
        ("gpt-5.1-codex", 272_000), ("gpt-6.1-sol", 272_000),
        ("gpt-5-chat-latest", 128_000), ("openai/gpt-4.1", 1_047_576),
        ("gpt-4o-mini", 128_000), ("gpt-4-turbo", 128_000), ("gpt-4-0613", 8_192),
        ("gpt-4-32k", 32_768), ("gpt-3.5-turbo", 16_385), ("o3", 200_000), ("o1-mini", 128_000),
        ("codex-mini-latest", 200_000), ("gpt-oss-120b", 131_072), ("gemini-2.5-flash", 1_048_576),
        ("models/gemini-1.5-pro", 2_097_152), ("deepseek-chat", 128_000),
        ("deepseek-r1-distill-llama-8b", None), ("mine", None), (None, None),
    ],
)  # fmt: skip
def test_the_window_follows_from_the_name(model: str | None, window: int | None) -> None:
    assert window_of(model) == window
