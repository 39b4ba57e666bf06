"""The counter of a model, by its name."""

from __future__ import annotations

import re
from functools import cache

from ctxgc.errors import InputError
from ctxgc.tokens.counter import CountingCache, TokenCounter
from ctxgc.tokens.estimated import CharCounter, EstimatedCounter, UpperBoundCounter
from ctxgc.tokens.exact import VOCABULARIES, ExactCounter, usable

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

_PATTERNS = tuple((re.compile(rf"(?:^|[/:.@\s])(?:{start})"), target) for start, target in MODELS)


def counter_for(model: str | None = None) -> TokenCounter:
    """Return the counter for a model: exact where its tokenizer is public and ships, else an upper bound.

    Without a model it counts in o200k exactly. Each estimate is a new `EstimatedCounter`, for its owner to
    calibrate; what was counted is cached for the whole process. If the shipped vocabulary is
    damaged, every model gets an estimate from characters, which says so in its name and is not `exact`.
    """
    target = _target(model)
    if target in VOCABULARIES:
        return _exact(target)
    return EstimatedCounter(bound=_bound(target))


def _target(model: str | None) -> str:
    if model is None:
        return "o200k_base"
    if not isinstance(model, str):
        raise InputError(
            f"model must be a name or None, got {type(model).__name__}",
            hint='for example "gpt-4o"',
            field="model",
        )
    name = model.strip().lower()
    return next((target for pattern, target in _PATTERNS if pattern.search(name)), "unknown")


@cache
def _exact(encoding: str) -> TokenCounter:
    return CountingCache(ExactCounter(encoding) if usable(encoding) else CharCounter())


@cache
def _bound(profile: str) -> TokenCounter:
    base = ExactCounter("o200k_base") if usable("o200k_base") else CharCounter()
    return CountingCache(UpperBoundCounter(profile, base=base))
