"""What the tools do with their arguments: one function each, between the protocol and the service."""

from __future__ import annotations

from typing import Any

import msgspec

from ctxgc.mcp import arguments as given
from ctxgc.mcp.calls import Call
from ctxgc.mcp.compressing import Summary
from ctxgc.mcp.intake import NewSegment
from ctxgc.stores import SearchFilters

Json = dict[str, Any]


async def usage(call: Call, _: given.Nothing) -> Json:
    """Tell how full the context is."""
    return await call.run(call.service.usage)


async def search(call: Call, asked: given.Search) -> Json:
    """Find segments."""
    names = ("type", "tier", "task_id", "file_path", "created_after", "created_before")
    filters = SearchFilters(
        tags=tuple(asked.tags), **{name: getattr(asked, name) for name in names}
    )
    return await call.run(call.service.search, asked.query, filters, asked.limit, asked.offset)


async def recall(call: Call, asked: given.Recall) -> Json:
    """Bring a text back."""
    return await call.run(call.service.recall, asked.handle, _pair(asked.lines), asked.pattern)


async def ingest(call: Call, asked: given.Ingest) -> Json:
    """Take segments and messages in."""
    segments = [_new_segment(segment) for segment in asked.segments]
    return await call.run(call.service.ingest, segments, asked.messages)


async def analyze(call: Call, asked: given.Analyze) -> Json:
    """Say what may leave."""
    return await call.run(call.service.analyze, **asked.model_dump())


async def prune(call: Call, asked: given.Prune) -> Json:
    """Let segments go."""
    options = asked.model_dump(exclude={"segment_ids"})
    return await call.run(call.service.prune, asked.segment_ids, **options)


async def pin(call: Call, asked: given.Refer) -> Json:
    """Protect segments."""
    return await call.run(call.service.pin, asked.segment_ids, asked.query, pinned=True)


async def unpin(call: Call, asked: given.Refer) -> Json:
    """Protect segments no longer."""
    return await call.run(call.service.pin, asked.segment_ids, asked.query, pinned=False)


async def configure(call: Call, asked: given.Configure) -> Json:
    """Set limits, windows, batch size and strategy."""
    return await call.run(call.service.configure, asked.given())


async def task(call: Call, asked: given.Task) -> Json:
    """Note what the host works on."""
    said = asked.given()
    if asked.line_range is not None:
        said["line_range"] = _pair(asked.line_range)
    return await call.run(call.service.task, said)


async def import_(call: Call, asked: given.Import) -> Json:
    """Import piece by piece: each is durable by itself, so a cancelled call can be repeated."""
    total: Json = {}
    while True:
        piece = await call.run(call.service.import_piece, asked.path)
        total = _added(total, piece)
        await call.progress(piece["bytes_read"], piece["bytes"], f"{total['ingested']} segments")
        if piece["done"]:
            return total


async def compress(call: Call, asked: given.Compress) -> Json:
    """Put a summary in the place of segments."""
    service = call.service
    draft = await call.run(service.draft, asked.segment_ids, asked.query)
    if asked.summary is not None:
        summary = await call.run(service.summarise, draft, asked.summary)
    else:
        summary = await call.run(service.summarise, draft, await call.sample(draft))
    return await call.run(service.compress, draft, _by(summary, asked), dry_run=asked.dry_run)


async def expand(call: Call, asked: given.Expand) -> Json:
    """Put originals back in the place of their summary."""
    return await call.run(call.service.expand, asked.segment_id)


async def checkpoint(call: Call, asked: given.CheckpointIn) -> Json:
    """Create, list or restore checkpoints."""
    service = call.service
    if asked.action == "list":
        return await call.run(service.checkpoints)
    if asked.action == "create":
        return await call.run(service.checkpoint, asked.label)
    wanted = asked.checkpoint_id or asked.label or None
    return await call.run(service.restore, wanted, dry_run=asked.dry_run)


def _new_segment(segment: given.SegmentIn) -> NewSegment:
    plain = segment.model_dump(exclude={"line_range", "tags", "references"})
    return NewSegment(
        **plain,
        line_range=_pair(segment.line_range),
        tags=tuple(segment.tags),
        references=tuple(segment.references),
    )


def _pair(lines: list[int] | None) -> tuple[int, int] | None:
    return None if lines is None else (lines[0], lines[1])


def _by(summary: Summary, asked: given.Compress) -> Summary:
    is_own = asked.summary is not None and summary.by == "client"
    return msgspec.structs.replace(summary, by="agent") if is_own else summary


def _added(total: Json, piece: Json) -> Json:
    """Sum up the pieces of an import; all else is as the last piece left it."""
    if not total:
        return piece
    counts = ("ingested", "already_known", "passed_over", "broken")
    summed = {name: total[name] + piece[name] for name in counts}
    usage = {**piece["usage"], "before": total["usage"]["before"]}
    return {**total, **piece, **summed, "usage": usage}
