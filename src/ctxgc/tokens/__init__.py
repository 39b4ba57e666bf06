"""Token counters: exact for models with a public tokenizer, an upper bound for the others.

Nothing here reads the network; the vocabularies ship with the package and are loaded by the first count.

- `models`: `counter_for(model)` gives the right counter, `window_of(model)` the size of its window.
- `counter`: the `TokenCounter` protocol, a cache for any counter, and calibration by reported usage.
- `messages`: what a message costs, and how many tokens a provider counts for one of ours.
- `exact`: OpenAI's public vocabularies; `estimated`: upper bounds for other tokenizers.
"""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.tokens.counter import Calibration, CountingCache, QUORUM, TokenCounter
    from ctxgc.tokens.estimated import CharCounter, EstimatedCounter, UpperBoundCounter
    from ctxgc.tokens.exact import ExactCounter
    from ctxgc.tokens.messages import (
        CALL_OVERHEAD, RESULT_OVERHEAD, Reported, message_tokens, part_tokens, scale_of,
        tokens_before,
    )
    from ctxgc.tokens.models import counter_for, window_of
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "counter": "Calibration CountingCache QUORUM TokenCounter",
            "estimated": "CharCounter EstimatedCounter UpperBoundCounter",
            "exact": "ExactCounter",
            "messages":
                "CALL_OVERHEAD RESULT_OVERHEAD Reported message_tokens part_tokens scale_of "
                "tokens_before",
            "models": "counter_for window_of",
        },
    )
