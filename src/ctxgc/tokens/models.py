"""The counter and the window of a model, by its name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TypeVar

from ctxgc.errors import InputError
from ctxgc.tokens.counter import Calibration, CountingCache, TokenCounter
from ctxgc.tokens.estimated import CharCounter, EstimatedCounter, UpperBoundCounter
from ctxgc.tokens.exact import VOCABULARIES, ExactCounter, usable

T = TypeVar("T")

MODELS: tuple[tuple[str, str], ...] = (
    (r"gpt-?oss", "o200k_base"),
    (r"(chat)?gpt-?4o|gpt-?4\.[15]|gpt-?5", "o200k_base"),
    (r"o[134](?![0-9a-z])|codex-mini", "o200k_base"),
    (r"gpt-?4(?![0-9a-z.])|gpt-?3\.?5", "cl100k_base"),
    (r"text-embedding-(3|ada-002)|(davinci|babbage)-002", "cl100k_base"),
    (r"claude-(instant|v?[123](?![0-9]))", "claude-3"),
    (r"claude", "claude"),
    (r"[^/]*distill", "unknown"),
    (r"llama-?[34]", "llama"),
    (r"llama-?2|codellama", "mistral"),
    (r"qwen|qwq", "qwen"),
    (r"deepseek", "deepseek"),
    (r"mistral|mixtral|ministral|codestral|devstral|magistral|pixtral|open-mi[sx]", "mistral"),
)
"""Start of a model's name -> encoding or profile; the first that fits. What fits none is `unknown`.

The name may follow a provider (`openai/`, `us.anthropic.`, `ft:`).
"""

WINDOWS: tuple[tuple[str, int], ...] = (
    (r".*(\[1m\]|-1m\b)", 1_000_000),
    (r"claude-(instant|v?1|2(?![.-]?1))", 100_000),
    (r"claude", 200_000),
    (r"gpt-?5[^/]*chat", 128_000),
    (r"gpt-?[56]|codex(?!-mini)", 272_000),
    (r"gpt-?4\.1", 1_047_576),
    (r"(chat)?gpt-?4o|gpt-?4\.5|gpt-?4-(turbo|1106|0125)|o1-(mini|preview)", 128_000),
    (r"o[134](?![0-9a-z])|codex-mini", 200_000),
    (r"gpt-?4-32k", 32_768),
    (r"gpt-?4(?![0-9a-z.])", 8_192),
    (r"gpt-?3\.?5", 16_385),
    (r"gpt-?oss", 131_072),
    (r"gemini-1\.5-pro", 2_097_152),
    (r"gemini", 1_048_576),
    (r"deepseek-(chat|reasoner|v3|r1)(?!-distill)", 128_000),
    (r"llama-?(3\.[123]|4)|mistral-(large|medium|small)", 128_000),
)
"""Start of a model's name -> the most input that its provider takes, as of 2026-11; the first that fits.

Where a larger window must be asked for (Claude's million), or costs more beyond a size (GPT-6), the usual
one counts. Models that every server
offers with a window of its own are not here.
"""


def _compiled(table: tuple[tuple[str, T], ...]) -> tuple[tuple[re.Pattern[str], T], ...]:
    return tuple((re.compile(rf"(?:^|[/:.@\s])(?:{start})"), target) for start, target in table)


_PATTERNS = _compiled(MODELS)
_WINDOW_PATTERNS = _compiled(WINDOWS)


def counter_for(
    model: str | None = None, learned: Mapping[str, Iterable[float]] | None = None
) -> TokenCounter:
    """Return the counter for a model: exact where its tokenizer is public and ships, else an upper bound.

    Without a model it counts in o200k exactly. Each estimate is a new `EstimatedCounter`, for its owner to
    calibrate; `learned` has the ratios to go on from, by the counter's name. What was counted is cached for
    the whole process. If the shipped vocabulary is damaged, every model gets an estimate from characters,
    which says so in its name and is not `exact`.
    """
    target = _target(model)
    if target in VOCABULARIES:
        return _exact(target)
    bound = _bound(target)
    return EstimatedCounter(
        bound=bound, calibration=Calibration((learned or {}).get(bound.name, ()))
    )


def window_of(model: str | None) -> int | None:
    """Return the window of a model in tokens; None if it is not known."""
    name = "" if model is None else _checked(model)
    return next((size for pattern, size in _WINDOW_PATTERNS if pattern.search(name)), None)


def _target(model: str | None) -> str:
    if model is None:
        return "o200k_base"
    name = _checked(model)
    return next((target for pattern, target in _PATTERNS if pattern.search(name)), "unknown")


def _checked(model: str) -> str:
    """Return a name in the form that the tables know."""
    given: object = model
    if not isinstance(given, str):
        raise InputError(
            f"model must be a name or None, got {type(given).__name__}",
            hint='for example "gpt-4o"',
            field="model",
        )
    return given.strip().lower()


@cache
def _exact(encoding: str) -> TokenCounter:
    return CountingCache(ExactCounter(encoding) if usable(encoding) else CharCounter())


@cache
def _bound(profile: str) -> TokenCounter:
    base = ExactCounter("o200k_base") if usable("o200k_base") else CharCounter()
    return CountingCache(UpperBoundCounter(profile, base=base))
