"""The arguments of the tools, as pydantic models. Only the tools know these classes."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from ctxgc.session import SegmentType

MOST_ITEMS = 1_000


def _parsed(value: Any) -> Any:
    """Read a list or object that a client wrote as a JSON text; leave other texts alone."""
    if not isinstance(value, str) or value[:1] not in ("[", "{"):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _listed(value: Any) -> Any:
    """Read a single text as a list with one item."""
    found = _parsed(value)
    return [found] if isinstance(found, str) else found


Text = Annotated[str, Field(min_length=1, max_length=2_000)]
Texts = Annotated[list[Text], BeforeValidator(_listed), Field(max_length=MOST_ITEMS)]
Lines = Annotated[list[int], BeforeValidator(_parsed), Field(min_length=2, max_length=2)]


class Arguments(BaseModel):
    """Base of all arguments: an unknown one is an error."""

    model_config = ConfigDict(extra="forbid")

    def given(self) -> dict[str, Any]:
        """Return what the caller gave, and nothing else."""
        found = self.model_dump(exclude_unset=True)
        return {key: value for key, value in found.items() if value is not None}


class Nothing(Arguments):
    """No arguments."""


class SegmentIn(Arguments):
    """One segment to take in."""

    text: str
    type: SegmentType | None = None
    role: Literal["user", "assistant", "tool"] | None = None
    file_path: Text | None = None
    line_range: Lines | None = Field(None, description="[first, last]")
    tags: Texts = []
    topic_id: Text | None = None
    task_id: Text | None = None
    references: Texts = Field([], description="ids or names")
    name: Text | None = Field(None, description="to refer to it later")


class Ingest(Arguments):
    """Arguments of context_ingest."""

    segments: Annotated[
        list[SegmentIn], BeforeValidator(_parsed), Field(max_length=MOST_ITEMS)
    ] = []
    messages: Annotated[
        list[dict[str, Any]],
        BeforeValidator(_parsed),
        Field(max_length=MOST_ITEMS, description="provider messages, any format"),
    ] = []


class Import(Arguments):
    """Arguments of context_import."""

    path: Annotated[str, Field(min_length=1, max_length=4_096)]


class Analyze(Arguments):
    """Arguments of context_gc_analyze."""

    max_candidates: Annotated[int, Field(ge=0, le=1_000)] = 20
    include_scores: bool = True
    target_tokens: Annotated[int, Field(ge=0)] | None = Field(
        None, description="size to get down to"
    )
    dry_run: bool = Field(True, description="false applies the plan at once")


class Prune(Arguments):
    """Arguments of context_gc_prune."""

    segment_ids: Texts = Field([], description="ids, handles, names or words")
    plan_id: Text | None = None
    query: Text | None = Field(None, description="all with these words")
    strategy: Literal["stash", "delete", "auto"] | None = None
    confirm: bool = Field(False, description="needed to delete")
    dry_run: bool = False


class Refer(Arguments):
    """Arguments of context_gc_pin and context_gc_unpin."""

    segment_ids: Texts = Field([], description="ids, handles, names or words")
    query: Text | None = None


class Configure(Arguments):
    """Arguments of context_gc_configure."""

    context_limit: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = None
    soft_limit_tokens: int | None = None
    hard_limit_tokens: int | None = None
    target_percent: float | None = None
    recent_messages: int | None = None
    recent_user_messages: int | None = None
    decision_window_seconds: float | None = None
    recent_files: int | None = None
    batch: int | None = None
    strategy: Literal["stash", "auto"] | None = None
    score_profile: Literal["default", "s0", "s1", "points"] | None = None
    auto_trigger: bool | None = None


class Search(Arguments):
    """Arguments of context_search."""

    query: Text
    limit: Annotated[int, Field(ge=1, le=50)] = 5
    offset: Annotated[int, Field(ge=0, le=10_000)] = 0
    type: SegmentType | None = None
    tier: Literal["working", "stashed"] | None = None
    task_id: Text | None = None
    file_path: Text | None = None
    tags: Texts = []
    created_after: datetime | None = None
    created_before: datetime | None = None


class Recall(Arguments):
    """Arguments of context_recall."""

    handle: Text = Field(description="handle, id, name or words")
    lines: Lines | None = Field(None, description="[first, last], from 1")
    pattern: Text | None = Field(None, description="only around this text")


class Compress(Arguments):
    """Arguments of context_compress."""

    segment_ids: Texts = Field([], description="ids, handles, names or words")
    query: Text | None = None
    summary: Annotated[str, Field(max_length=200_000)] | None = Field(
        None, description="yours; else one is made"
    )
    dry_run: bool = False


class Expand(Arguments):
    """Arguments of context_expand."""

    segment_id: Text = Field(description="summary or original")


class CheckpointIn(Arguments):
    """Arguments of context_checkpoint."""

    action: Literal["create", "list", "restore"] = "create"
    label: Annotated[str, Field(max_length=200)] = ""
    checkpoint_id: Text | None = Field(None, description="id or label; else the newest")
    dry_run: bool = False


class Task(Arguments):
    """Arguments of context_task."""

    task_id: Annotated[str, Field(max_length=2_000)] | None = None
    depends_on: Texts | None = None
    active_file: Annotated[str, Field(max_length=2_000)] | None = None
    line_range: Lines | None = None
    open_files: Texts | None = Field(None, description="path, or path:line for a breakpoint")
