"""How the strict server counts tokens when nobody gives it a counter."""

from __future__ import annotations

import functools

from ctxgc.tokens import ExactCounter


def default_count(text: str) -> int:
    """Return the tokens of a text in o200k, the tokenizer of OpenAI's current models."""
    return _counter().count(text)


@functools.cache
def _counter() -> ExactCounter:
    return ExactCounter("o200k_base")
