"""Summarizers: any callable, one without a model, two over the official SDKs, and a safe way to run them."""

from ctxgc.summarizers.anthropic import AnthropicSummarizer
from ctxgc.summarizers.base import Summarizer, TextCounter
from ctxgc.summarizers.extractive import ExtractiveSummarizer
from ctxgc.summarizers.openai import OpenAISummarizer
from ctxgc.summarizers.resolve import resolve_summarizer
from ctxgc.summarizers.run import SummaryOutcome, SummaryRunner, run_summarizer

__all__ = [
    "AnthropicSummarizer",
    "ExtractiveSummarizer",
    "OpenAISummarizer",
    "Summarizer",
    "SummaryOutcome",
    "SummaryRunner",
    "TextCounter",
    "resolve_summarizer",
    "run_summarizer",
]
