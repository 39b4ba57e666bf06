"""Token counters: exact for models with a public tokenizer, an upper bound for the others.

Nothing here reads the network; the vocabularies ship with the package and are loaded by the first count.

- `models`: `counter_for(model)` gives the right counter.
- `counter`: the `TokenCounter` protocol, a cache for any counter, calibration by reported usage, and
  what a message costs.
- `exact`: OpenAI's public vocabularies; `estimated`: upper bounds for other tokenizers.
"""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.tokens.counter import (
        CALL_OVERHEAD, Calibration, CountingCache, QUORUM, RESULT_OVERHEAD, Reported, TokenCounter,
        message_tokens, part_tokens, scale_of, tokens_before,
    )
    from ctxgc.tokens.estimated import CharCounter, EstimatedCounter, UpperBoundCounter
    from ctxgc.tokens.exact import ExactCounter
    from ctxgc.tokens.models import counter_for
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "counter":
                "CALL_OVERHEAD Calibration CountingCache QUORUM RESULT_OVERHEAD Reported "
                "TokenCounter message_tokens part_tokens scale_of tokens_before",
            "estimated": "CharCounter EstimatedCounter UpperBoundCounter",
            "exact": "ExactCounter",
            "models": "counter_for",
        },
    )
