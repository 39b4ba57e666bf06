"""Claude Code's session files: one JSON object per line, messages in Anthropic's format.

A turn of the model is written block by block, each block a line of its own with the same message id.
Every line is an entry here: an appended file can be read on from where the last reading ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ctxgc.wire.json_text import dump
from ctxgc.wire.transcripts.entry import Compaction, Entry, Item, Link, Usage, moment
from ctxgc.wire.transcripts.facts import Facts, beside_of, tokens_of

_SPOKEN = ("user", "assistant")
_INVENTED = "<synthetic>"
"""The model of lines that Claude Code wrote in the model's place, which no request holds."""


def is_claude_code(line: Mapping[str, Any]) -> bool:
    """Tell whether a line is one that Claude Code wrote."""
    if "sessionId" in line and ("uuid" in line or isinstance(line.get("type"), str)):
        return True
    return line.get("type") in ("summary", "file-history-snapshot", "queue-operation")


def entry_of(line: Mapping[str, Any]) -> Entry | None:
    """Return what a line says to the model of the main conversation; None if that is nothing."""
    found = _spoken(line, 0) if line.get("type") in _SPOKEN else None
    return None if found is None or found.is_side else found


def items(line: Mapping[str, Any], number: int, facts: Facts) -> Iterator[Item]:
    """Yield what a line holds, a subagent's talk included, and note what it says about the session."""
    at = moment(line.get("timestamp"))
    _note(line, facts)
    facts.note_time(at)
    if _is_boundary(line):
        yield _compaction(line, number)
    kind = line.get("type")
    if kind == "attachment":
        entry = _attachment(line, number, facts)
    else:
        entry = _spoken(line, number) if kind in _SPOKEN else None
    if entry is None:
        yield from _link(line, number)
        return
    if entry.is_summary and line.get("parentUuid") is None:
        # Before there were boundaries, a summary without a parent opened the next window.
        yield Compaction(line=number, written_at=at)
    yield entry
    usage = _usage(line, number)
    if usage is not None:
        yield usage


def _spoken(line: Mapping[str, Any], number: int) -> Entry | None:
    message, uuid = line.get("message"), line.get("uuid")
    if not isinstance(message, Mapping) or not isinstance(uuid, str) or not uuid:
        return None
    role, model = message.get("role"), message.get("model")
    if role not in _SPOKEN or not message.get("content") or model == _INVENTED:
        return None
    is_summary = line.get("isCompactSummary") is True
    if line.get("isVisibleInTranscriptOnly") is True and not is_summary:
        return None
    return Entry(
        message_id=uuid,
        data={"role": role, "content": message["content"]},
        format="anthropic",
        written_at=moment(line.get("timestamp")),
        line=number,
        reply_id=_text(message.get("id")),
        parent_id=_text(line.get("parentUuid")),
        model=_text(model),
        is_side=line.get("isSidechain") is True,
        is_aside=line.get("isMeta") is True,
        is_summary=is_summary,
    )


def _attachment(line: Mapping[str, Any], number: int, facts: Facts) -> Entry | None:
    """Return what an attachment puts into the conversation; most say something, some only record."""
    said, uuid = line.get("attachment"), line.get("uuid")
    if isinstance(said, Mapping) and said.get("type") == "prompt_snapshot":
        _note_prompt(said, facts)
    rendered = line.get("rendered")
    blocks = rendered if isinstance(rendered, list) else []
    texts = [_rendered_text(block) for block in blocks if isinstance(block, Mapping)]
    text = "\n".join(filter(None, texts))
    if not text or not isinstance(uuid, str):
        return None
    return Entry(
        message_id=uuid,
        data={"role": _role(line), "content": [{"type": "text", "text": text}]},
        format="anthropic",
        written_at=moment(line.get("timestamp")),
        line=number,
        parent_id=_text(line.get("parentUuid")),
        is_side=line.get("isSidechain") is True,
        is_aside=True,
    )


def _role(line: Mapping[str, Any]) -> str:
    return "system" if line.get("renderedRole") == "system" else "user"


def _rendered_text(block: Mapping[str, Any]) -> str:
    content = block.get("content")
    if isinstance(content, str):
        return content
    inner = content if isinstance(content, list) else []
    return "\n".join(str(b.get("text", "")) for b in inner if isinstance(b, Mapping))


def _note_prompt(said: Mapping[str, Any], facts: Facts) -> None:
    prompt, tools = said.get("systemPrompt"), said.get("tools")
    if isinstance(prompt, list):
        facts.system = "\n".join(part for part in prompt if isinstance(part, str))
    if isinstance(tools, list):
        facts.tools = dump(tools)


def _note(line: Mapping[str, Any], facts: Facts) -> None:
    facts.note("session_id", line.get("sessionId"))
    facts.note("version", line.get("version"))
    if facts.project is None:
        facts.note("project", line.get("cwd"))
    if line.get("type") == "summary":
        facts.note("title", line.get("summary"))
    elif line.get("type") in ("custom-title", "ai-title"):
        facts.note("title", line.get("customTitle") or line.get("aiTitle") or line.get("title"))
    message = line.get("message")
    if isinstance(message, Mapping) and line.get("isSidechain") is not True:
        model = message.get("model")
        facts.note("model", None if model == _INVENTED else model)


def _is_boundary(line: Mapping[str, Any]) -> bool:
    is_system = line.get("type") == "system" and line.get("isSidechain") is not True
    return is_system and line.get("subtype") == "compact_boundary"


def _compaction(line: Mapping[str, Any], number: int) -> Compaction:
    said = line.get("compactMetadata")
    about: Mapping[str, Any] = said if isinstance(said, Mapping) else {}
    kept = about.get("preservedMessages")
    uuids = kept.get("uuids") if isinstance(kept, Mapping) else None
    before = tokens_of(about, "preTokens")
    return Compaction(
        line=number,
        written_at=moment(line.get("timestamp")),
        trigger=_text(about.get("trigger")) or "",
        tokens_before=before or None,
        kept=tuple(u for u in uuids if isinstance(u, str)) if isinstance(uuids, list) else (),
    )


def _link(line: Mapping[str, Any], number: int) -> Iterator[Link]:
    uuid = _text(line.get("uuid"))
    if uuid is not None and "parentUuid" in line:
        yield Link(
            message_id=uuid,
            parent_id=_text(line.get("parentUuid")),
            line=number,
            is_side=line.get("isSidechain") is True,
        )


def _usage(line: Mapping[str, Any], number: int) -> Usage | None:
    message = line["message"] if isinstance(line.get("message"), Mapping) else {}
    said = message.get("usage")
    if not isinstance(said, Mapping):
        return None
    return Usage(
        uncached=tokens_of(said, "input_tokens"),
        cache_read=tokens_of(said, "cache_read_input_tokens"),
        cache_write=tokens_of(said, "cache_creation_input_tokens"),
        output=tokens_of(said, "output_tokens"),
        line=number,
        reply_id=_text(message.get("id")),
        written_at=moment(line.get("timestamp")),
        model=_text(message.get("model")),
        is_side=line.get("isSidechain") is True,
        beside=beside_of(line),
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
