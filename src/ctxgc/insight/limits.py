"""How large the context window of a model is, where the transcript does not say it."""

from __future__ import annotations

import re

DEFAULT_LIMIT = 200_000
_SIZES = (128_000, 200_000, 400_000, 1_000_000, 2_000_000)
_MODELS: tuple[tuple[str, int], ...] = (
    (r"\[1m\]|-1m\b", 1_000_000),
    (r"claude", 200_000),
    (r"gpt-?4\.1|gemini", 1_000_000),
    (r"gpt-?5|codex", 272_000),
    (r"o[134]\b", 200_000),
    (r"gpt-?4|llama|qwen|mistral|deepseek", 128_000),
)


def limit_for(model: str | None, reported: int | None = None, largest: int = 0) -> int:
    """Return the window of a model in tokens; never less than the largest request that it took.

    Args:
        model: its name; None when nobody knows.
        reported: what the transcript says.
        largest: the tokens of the largest request.
    """
    if reported is not None and reported >= largest:
        return reported
    name = (model or "").lower()
    known = next((size for pattern, size in _MODELS if re.search(pattern, name)), DEFAULT_LIMIT)
    return next((size for size in (known, *_SIZES) if size >= max(known, largest)), largest)
