"""Summarizers: any callable, one without a model, two over the official SDKs, and a safe way to run them."""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.summarizers.base import INSTRUCTIONS, Summarizer, TextCounter, fenced
    from ctxgc.summarizers.extractive import ExtractiveSummarizer
    from ctxgc.summarizers.models import AnthropicSummarizer, OpenAISummarizer
    from ctxgc.summarizers.resolve import (
        SummaryOutcome, SummaryRunner, resolve_summarizer, run_summarizer,
    )
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "base": "INSTRUCTIONS Summarizer TextCounter fenced",
            "extractive": "ExtractiveSummarizer",
            "models": "AnthropicSummarizer OpenAISummarizer",
            "resolve": "SummaryOutcome SummaryRunner resolve_summarizer run_summarizer",
        },
    )
