"""Codex's rollout files: one JSON object per line, messages as items of the Responses API.

A line is `{"timestamp", "type", "payload"}`. The items are in `response_item` lines; a `compacted` line
brings the whole next window with it, or in older files only its summary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from ctxgc.wire.json_text import dump
from ctxgc.wire.transcripts.entry import Compaction, Entry, Item, Rollback, Usage, moment
from ctxgc.wire.transcripts.facts import Facts, beside_of, tokens_of

_KINDS = frozenset(
    ("session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state",
     "token_usage_record", "inter_agent_communication", "security_risk_score")
)  # fmt: skip
_ASIDES = ("<environment_context>", "<user_instructions>", "<permissions", "<turn_aborted>",
           "# AGENTS.md instructions", "<skill", "<collaboration_mode")  # fmt: skip
_RECORDS = ("ghost_snapshot", "compaction_trigger")
"""Items that stand in the file but are not sent."""


def is_codex(line: Mapping[str, Any]) -> bool:
    """Tell whether a line is one that Codex wrote."""
    return line.get("type") in _KINDS and isinstance(line.get("payload"), Mapping)


def entry_of(line: Mapping[str, Any], place: int) -> Entry | None:
    """Return the item of a line, named by its place; None if the line says nothing to the model."""
    payload = line.get("payload")
    if line.get("type") != "response_item" or not isinstance(payload, Mapping):
        return None
    return _entry(payload, place, 0, moment(line.get("timestamp")))


def items(line: Mapping[str, Any], number: int, facts: Facts) -> Iterator[Item]:
    """Yield what a line holds, and note what it says about the session."""
    payload, at = line["payload"], moment(line.get("timestamp"))
    facts.note_time(at)
    match line["type"]:
        case "response_item":
            entry = _entry(payload, number, 0, at)
            if entry is not None:
                yield entry
        case "compacted":
            yield from _compacted(payload, number, at)
        case "session_meta":
            _note_session(payload, facts)
        case "turn_context":
            facts.note("model", payload.get("model"))
        case "event_msg":
            yield from _event(payload, number, at, facts)


def _entry(
    item: Mapping[str, Any], number: int, place: int, at: datetime | None, *, summary: bool = False
) -> Entry | None:
    kind = item.get("type")
    if not isinstance(kind, str) or kind in _RECORDS:
        return None
    return Entry(
        message_id=f"line-{number}" if not place else f"line-{number}-{place}",
        data=dict(item),
        format="responses",
        written_at=at,
        line=number,
        is_aside=_is_aside(item),
        is_summary=summary,
    )


def _is_aside(item: Mapping[str, Any]) -> bool:
    """Tell whether a user item is one that Codex put in by itself."""
    content = item.get("content")
    if item.get("role") != "user" or not isinstance(content, list) or not content:
        return False
    text = content[0].get("text") if isinstance(content[0], Mapping) else None
    return isinstance(text, str) and text.lstrip().startswith(_ASIDES)


def _compacted(payload: Mapping[str, Any], number: int, at: datetime | None) -> Iterator[Item]:
    yield Compaction(line=number, written_at=at)
    history = payload.get("replacement_history")
    if isinstance(history, list):
        sound = [item for item in history if isinstance(item, Mapping)]
        found = (_entry(item, number, n, at, summary=True) for n, item in enumerate(sound, 1))
        yield from (entry for entry in found if entry is not None)
        return
    summary = payload.get("message")
    text = summary if isinstance(summary, str) and summary else "(no summary available)"
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    entry = _entry(said, number, 1, at, summary=True)
    if entry is not None:
        yield entry


def _note_session(payload: Mapping[str, Any], facts: Facts) -> None:
    facts.note("session_id", payload.get("id") or payload.get("session_id"))
    facts.note("project", payload.get("cwd"))
    facts.note("version", payload.get("cli_version"))
    base = payload.get("base_instructions") or payload.get("instructions")
    text = base.get("text") if isinstance(base, Mapping) else base
    facts.system = text if isinstance(text, str) else ""
    tools = payload.get("dynamic_tools")
    facts.tools = dump(tools) if isinstance(tools, list) and tools else ""


def _event(
    payload: Mapping[str, Any], number: int, at: datetime | None, facts: Facts
) -> Iterator[Item]:
    match payload.get("type"):
        case "task_started" | "turn_started":
            facts.note_limit(payload.get("model_context_window"))
        case "thread_rolled_back":
            turns = tokens_of(payload, "num_turns")
            if turns:
                yield Rollback(turns=turns, line=number)
        case "token_count":
            info = payload.get("info")
            if isinstance(info, Mapping):
                facts.note_limit(info.get("model_context_window"))
                yield from _usage(info, number, at, facts.model)


def _usage(
    info: Mapping[str, Any], number: int, at: datetime | None, model: str | None
) -> Iterator[Usage]:
    last, total = info.get("last_token_usage"), info.get("total_token_usage")
    if not isinstance(last, Mapping):
        return
    read, write = (
        tokens_of(last, "cached_input_tokens"),
        tokens_of(last, "cache_write_input_tokens"),
    )
    # The same count is written again when only the rate limits changed: its running total tells.
    running = tokens_of(total, "total_tokens") if isinstance(total, Mapping) else None
    yield Usage(
        uncached=max(0, tokens_of(last, "input_tokens") - read - write),
        cache_read=read,
        cache_write=write,
        output=tokens_of(last, "output_tokens"),
        line=number,
        reply_id=None if running is None else f"total-{running}",
        written_at=at,
        model=model,
        beside=beside_of(info),
    )
