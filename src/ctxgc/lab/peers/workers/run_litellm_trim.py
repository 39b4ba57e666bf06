"""LiteLLM's `trim_messages`.

It counts all that it kept again for each message that it adds, and each new request begins anew: minutes for
one run. Its counts of single texts are remembered here, which changes no count.
"""

from __future__ import annotations

from copy import deepcopy
from functools import cache, lru_cache
from importlib import import_module
from typing import Any

from shared import numbered, serve  # type: ignore[import-not-found]  # in this folder

Json = dict[str, Any]

TEXTS = 100_000


def begin(settings: Json) -> Any:
    """Return a function that edits a history."""
    trim = import_module("litellm.utils").trim_messages
    return lambda history: numbered(trim(deepcopy(history), **settings), history)


def remember_counts() -> None:
    """Let the library count each text once."""
    counter: Any = import_module("litellm.litellm_core_utils.token_counter")
    count_function = counter._get_count_function  # noqa: SLF001 - nothing public is called so often

    @cache
    def remembering(model: str | None, custom_tokenizer: None = None) -> Any:
        return lru_cache(TEXTS)(count_function(model, custom_tokenizer))

    counter._get_count_function = remembering  # noqa: SLF001


if __name__ == "__main__":
    remember_counts()
    serve(begin)
