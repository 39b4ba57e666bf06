"""Summarizers: any callable from a text to a shorter one.

- `base`: what a summarizer is, and the instructions for a model; `models`: two over the official SDKs.
- `extractive`: one without a model, which picks lines.
- `resolve`: a summarizer by its name in a configuration, and a safe way to run any of them.
"""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.summarizers.base import INSTRUCTIONS, Summarizer, fenced
    from ctxgc.summarizers.extractive import ExtractiveSummarizer
    from ctxgc.summarizers.models import AnthropicSummarizer, OpenAISummarizer
    from ctxgc.summarizers.resolve import (
        SummaryOutcome, SummaryRunner, resolve_summarizer, run_summarizer,
    )
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "base": "INSTRUCTIONS Summarizer fenced",
            "extractive": "ExtractiveSummarizer",
            "models": "AnthropicSummarizer OpenAISummarizer",
            "resolve": "SummaryOutcome SummaryRunner resolve_summarizer run_summarizer",
        },
    )
