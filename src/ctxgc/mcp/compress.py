"""Compression: segments are replaced by one summary, and stay stashed behind it."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import msgspec

from ctxgc.config import GCConfig
from ctxgc.errors import SummarizerError
from ctxgc.mcp import usage
from ctxgc.mcp.context import Context
from ctxgc.mcp.request import Json
from ctxgc.session import (
    INSTRUCTIONS,
    ContextSegment,
    ExtractiveSummarizer,
    Summarizer,
    TokenCounter,
    fenced,
    resolve_summarizer,
    run_summarizer,
)

RATIO = 0.25


class CompressionDraft(msgspec.Struct, frozen=True, kw_only=True):
    """What to summarise: which segments, their text, and how long the summary may be."""

    segment_ids: list[str]
    text: str
    tokens: int
    most_tokens: int

    @property
    def instructions(self) -> str:
        """What a model is told; it gets the text itself as data."""
        return f"{INSTRUCTIONS} Use at most {self.most_tokens} tokens."

    @property
    def digest(self) -> str:
        """What tells this draft from that of another text."""
        return blake2b(self.text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    @property
    def request(self) -> str:
        """The text between markers that nothing inside it can close."""
        return fenced(self.text)


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """A summary, who made it, and which attempts failed before."""

    text: str
    by: str
    tried: list[str]


def draft_compression(context: Context, segments: Sequence[ContextSegment]) -> CompressionDraft:
    """Return what to summarise.

    Raises:
        InputError: a segment is pinned, not in the working tier, or not plain text.
    """
    context.work().check_compressible(segments)
    ordered = sorted(segments, key=lambda segment: segment.position)
    tokens = sum(segment.tokens or 0 for segment in ordered)
    return CompressionDraft(
        segment_ids=[segment.segment_id for segment in ordered],
        text="\n\n".join(segment.text for segment in ordered),
        tokens=tokens,
        most_tokens=max(1, int(tokens * RATIO)),
    )


def summarise(
    asked: CompressionDraft, config: GCConfig, counter: TokenCounter, given: str | None = None
) -> Summary:
    """Return the first good summary: the client's own, the configured summarizer's, the extractive one.

    Raises:
        SummarizerError: not even the extractive one made the text shorter.
    """
    tried: list[str] = []
    if given is not None:
        if 0 < counter.count(given.strip()) < asked.tokens:
            return Summary(text=given.strip(), by="client", tried=tried)
        tried.append("client: empty or not shorter")
    for name, summarizer in _own(config, asked, counter):
        outcome = run_summarizer(
            summarizer, asked.text, timeout=config.summarizer_timeout_seconds, counter=counter
        )
        if outcome.text is not None and outcome.tokens < asked.tokens:
            return Summary(text=outcome.text, by=name, tried=tried)
        tried.append(f"{name}: {outcome.failure} {outcome.detail}".strip())
    raise SummarizerError(
        "no summary is shorter than the text",
        hint="give a summary of your own, or stash it instead",
        tried=tried,
    )


def compress(context: Context, asked: CompressionDraft, summary: Summary) -> Json:
    """Put a summary in place."""
    before = context.tokens
    stand_in = context.work().compress(asked.segment_ids, summary.text)
    return {
        "compressed": asked.segment_ids,
        "summary_id": stand_in.segment_id,
        "summary": summary.text,
        "by": summary.by,
        **({"tried": summary.tried} if summary.tried else {}),
        "tokens_saved": before - context.tokens,
        "usage": usage.change(context, before),
        "next": f"context_expand(segment_id='{stand_in.segment_id}') brings the original back",
    }


def _own(
    config: GCConfig, asked: CompressionDraft, counter: TokenCounter
) -> list[tuple[str, Summarizer]]:
    extractive = ExtractiveSummarizer(asked.most_tokens, counter=counter)
    own: list[tuple[str, Summarizer]] = [("extractive", extractive)]
    configured = config.plugin_config.get("summarizer")
    if configured is None or configured == "extractive":
        return own
    found = resolve_summarizer(configured)
    return own if found is None else [("configured", found), *own]
