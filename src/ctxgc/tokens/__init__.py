"""Token counters: exact for models with a public tokenizer, an upper bound for the others.

`counter_for(model)` gives the right one. Nothing here reads the network; the vocabularies ship with the
package and are loaded by the first count.
"""

from ctxgc.tokens.cache import CountingCache
from ctxgc.tokens.calibration import Calibration
from ctxgc.tokens.chars import CharCounter
from ctxgc.tokens.counter import TokenCounter
from ctxgc.tokens.estimated import EstimatedCounter, UpperBoundCounter
from ctxgc.tokens.exact import ExactCounter
from ctxgc.tokens.media import image_tokens, media_tokens
from ctxgc.tokens.models import counter_for

__all__ = [
    "Calibration",
    "CharCounter",
    "CountingCache",
    "EstimatedCounter",
    "ExactCounter",
    "TokenCounter",
    "UpperBoundCounter",
    "counter_for",
    "image_tokens",
    "media_tokens",
]
