"""Compression: segments are replaced by one summary, and stay stashed behind it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ctxgc.config import GCConfig
from ctxgc.core import ContextSegment
from ctxgc.errors import InputError, SummarizerError
from ctxgc.mcp import usage
from ctxgc.mcp.context import Context
from ctxgc.mcp.request import Json
from ctxgc.summarizers import (
    INSTRUCTIONS,
    ExtractiveSummarizer,
    Summarizer,
    fenced,
    resolve_summarizer,
    run_summarizer,
)
from ctxgc.tokens import TokenCounter

RATIO = 0.25
_PLAIN = (None, "text", "tool_result")
_INHERITED = (
    "role", "file_path", "line_range", "tags", "topic_id", "task_id", "trust", "source", "policy",
    "message_id", "part", "call_id", "bond_id", "name", "created_step", "last_touched_step",
)  # fmt: skip


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
    def request(self) -> str:
        """The text between markers that nothing inside it can close."""
        return fenced(self.text)


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """A summary, who made it, and which attempts failed before."""

    text: str
    by: str
    tried: list[str]


def draft_compression(segments: Sequence[ContextSegment]) -> CompressionDraft:
    """Return what to summarise.

    Raises:
        InputError: a segment is pinned, not in the working tier, or not plain text.
    """
    for segment in segments:
        _check(segment)
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
    stand_in = _put_in_place(context, asked.segment_ids, summary)
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


def _put_in_place(context: Context, segment_ids: Sequence[str], summary: Summary) -> ContextSegment:
    """Replace segments by their summary, in the place of the first.

    Raises:
        InputError: one of them can no longer be replaced.
    """
    heap = context.heap
    first, *others = [heap.get(segment_id) for segment_id in segment_ids]
    for segment in (first, *others):
        _check(segment)
    stand_in = ContextSegment(
        segment_id=f"{first.segment_id}.sum{heap.version}",
        text=summary.text,
        type="summary",
        created_at=context.clock(),
        derived_from=first.segment_id,
        references=tuple(other.segment_id for other in others),
        **{name: getattr(first, name) for name in _INHERITED},
    )
    heap.replace(first.segment_id, stand_in)
    for other in others:
        heap.stash(other.segment_id)
    context.stash.learn([stand_in.segment_id])
    return heap.get(stand_in.segment_id)


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


def _check(segment: ContextSegment) -> None:
    if segment.pinned:
        raise _refused(segment, "is pinned", "context_gc_unpin it first")
    if segment.tier != "working":
        raise _refused(segment, "is stashed", "context_recall it first")
    if segment.part not in _PLAIN:
        raise _refused(segment, f"is a {segment.part}", "only text can be summarised")


def _refused(segment: ContextSegment, why: str, hint: str) -> InputError:
    return InputError(f"'{segment.segment_id}' {why}", hint=hint, field="segment_ids")
