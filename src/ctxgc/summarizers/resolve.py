"""Summarizers by name, as configuration files write them."""

from __future__ import annotations

from ctxgc.config import unknown_key
from ctxgc.errors import ConfigError
from ctxgc.summarizers.anthropic import AnthropicSummarizer
from ctxgc.summarizers.base import Summarizer
from ctxgc.summarizers.extractive import ExtractiveSummarizer
from ctxgc.summarizers.openai import OpenAISummarizer

_MODELS: dict[str, type[OpenAISummarizer | AnthropicSummarizer]] = {
    "openai": OpenAISummarizer,
    "anthropic": AnthropicSummarizer,
}


def resolve_summarizer(spec: Summarizer | str | None) -> Summarizer | None:
    """Return a callable as it is, a named summarizer, or None for None.

    Names are `extractive`, `openai:MODEL` and `anthropic:MODEL`.

    Raises:
        ConfigError: the name is unknown, lacks its model, or is no name at all.
        SummarizerError: the package that it needs is not installed.
    """
    if spec is None or callable(spec):
        return spec
    if not isinstance(spec, str):
        raise ConfigError(
            f"summarizer is of the type {type(spec).__name__}",
            hint="pass a callable, or a name such as extractive or openai:MODEL",
            key="summarizer",
        )
    kind, _, model = spec.partition(":")
    if kind == "extractive" and not model:
        return ExtractiveSummarizer()
    if kind not in _MODELS:
        raise unknown_key(spec, ["extractive", "openai:MODEL", "anthropic:MODEL"], "summarizer")
    if not model:
        raise ConfigError(f'summarizer "{spec}" names no model', hint=f"write {kind}:MODEL")
    return _MODELS[kind](model)
