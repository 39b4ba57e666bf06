"""Claude Code's session files: one JSON object per line, messages in Anthropic's format.

A turn of the model is written block by block, each block on its own line with the same message id. Here
every line is an entry, so a file that grew can be read from where the last reading ended.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import msgspec

from ctxgc.core import Format
from ctxgc.wire import dump
from ctxgc.wire.transcripts.harness import is_harness
from ctxgc.wire.transcripts.items import (
    Compaction,
    Item,
    SilentLine,
    TranscriptEntry,
    TranscriptFacts,
    Usage,
    anthropic_usage,
    beside_of,
    content_blocks,
    latest_usages,
    parse_time,
    subtract_tokens,
    tokens_of,
    with_beside,
)
from ctxgc.wire.transcripts.revision import Addition, Revision, split_lines
from ctxgc.wire.transcripts.window import RecordedWindow

_SPOKEN = ("user", "assistant")
_INVENTED = "<synthetic>"
"""The model of lines that Claude Code wrote itself and never sends."""


def is_claude_code(line: Mapping[str, Any]) -> bool:
    """Return whether Claude Code wrote a line."""
    if "sessionId" in line and ("uuid" in line or isinstance(line.get("type"), str)):
        return True
    return line.get("type") in ("summary", "file-history-snapshot", "queue-operation")


def entry_of(line: Mapping[str, Any]) -> TranscriptEntry | None:
    """Return the message of a line in the main conversation; None if it has none."""
    found = _spoken(line, 0) if line.get("type") in _SPOKEN else None
    return None if found is None or found.is_side else found


def items(line: Mapping[str, Any], number: int, facts: TranscriptFacts) -> Iterator[Item]:
    """Yield what a line holds, subagents' messages included, and note what it says about the session."""
    at = parse_time(line.get("timestamp"))
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
        # In files without boundaries a summary without a parent opens the next window.
        yield Compaction(line=number, written_at=at)
    yield entry
    usage = _usage(line, number)
    if usage is not None:
        yield usage


def _spoken(line: Mapping[str, Any], number: int) -> TranscriptEntry | None:
    message, uuid = line.get("message"), line.get("uuid")
    if not isinstance(message, Mapping) or not isinstance(uuid, str) or not uuid:
        return None
    role, model = message.get("role"), message.get("model")
    if role not in _SPOKEN or not message.get("content") or model == _INVENTED:
        return None
    is_summary = line.get("isCompactSummary") is True
    if line.get("isVisibleInTranscriptOnly") is True and not is_summary:
        return None
    return TranscriptEntry(
        message_id=uuid,
        data={"role": role, "content": message["content"]},
        format="anthropic",
        written_at=parse_time(line.get("timestamp")),
        line=number,
        reply_id=_text(message.get("id")),
        parent_id=_text(line.get("parentUuid")),
        model=_text(model),
        is_side=line.get("isSidechain") is True,
        is_aside=line.get("isMeta") is True or (role == "user" and is_harness(message["content"])),
        is_summary=is_summary,
    )


def _attachment(
    line: Mapping[str, Any], number: int, facts: TranscriptFacts
) -> TranscriptEntry | None:
    """Return the message that an attachment adds to the conversation; None for a mere record."""
    said, uuid = line.get("attachment"), line.get("uuid")
    if isinstance(said, Mapping) and said.get("type") == "prompt_snapshot":
        _note_prompt(said, facts)
    rendered = line.get("rendered")
    blocks = rendered if isinstance(rendered, list) else []
    texts = [_rendered_text(block) for block in blocks if isinstance(block, Mapping)]
    text = "\n".join(filter(None, texts))
    if not text or not isinstance(uuid, str):
        return None
    return TranscriptEntry(
        message_id=uuid,
        data={"role": _role(line), "content": [{"type": "text", "text": text}]},
        format="anthropic",
        written_at=parse_time(line.get("timestamp")),
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


def _note_prompt(said: Mapping[str, Any], facts: TranscriptFacts) -> None:
    prompt, tools = said.get("systemPrompt"), said.get("tools")
    if isinstance(prompt, list):
        facts.system = "\n".join(part for part in prompt if isinstance(part, str))
    if isinstance(tools, list):
        facts.tools = dump(tools)


def _note(line: Mapping[str, Any], facts: TranscriptFacts) -> None:
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
        written_at=parse_time(line.get("timestamp")),
        trigger=_text(about.get("trigger")) or "",
        tokens_before=before or None,
        kept=tuple(u for u in uuids if isinstance(u, str)) if isinstance(uuids, list) else (),
    )


def _link(line: Mapping[str, Any], number: int) -> Iterator[SilentLine]:
    uuid = _text(line.get("uuid"))
    if uuid is not None and "parentUuid" in line:
        yield SilentLine(
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
    return msgspec.structs.replace(
        anthropic_usage(said),
        line=number,
        reply_id=_text(message.get("id")),
        written_at=parse_time(line.get("timestamp")),
        model=_text(message.get("model")),
        is_side=line.get("isSidechain") is True,
        beside=beside_of(line),
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


# -- `toolUseResult`: the copy of a result that Claude Code shows on screen


_SHORT = 200
"""Texts up to this length say what was done, not what came of it; they stay."""
_NUMBERED = "→"


def edited_result(kept: Any, before: str, after: str) -> Any:
    """Return the value of `toolUseResult` after the text of the result was replaced.

    Args:
        kept: the value as it is: a text, or an object whose fields depend on the tool.
        before: the text of the result as it was.
        after: the text of the result now.

    The first field that holds the old text gets the new one; repetitions of it are emptied. Everything
    else stays, such as paths, counts and the patch of an edit.
    """
    if isinstance(kept, str):
        return after
    return _LineEdits(before, after).edit(kept)


class _LineEdits:
    """One walk over a value."""

    def __init__(self, before: str, after: str) -> None:
        self._before = before
        self._bare = _without_numbers(before)
        self._after = after
        self._placed = False

    def edit(self, value: Any) -> Any:
        if isinstance(value, dict):
            edited = {key: self.edit(each) for key, each in value.items()}
            if "numLines" in value and edited != value:
                edited["numLines"] = self._after.count("\n") + 1
            return edited
        if isinstance(value, list):
            return [self.edit(each) for each in value]
        return self._replace(value) if isinstance(value, str) and self._is_said(value) else value

    def _is_said(self, text: str) -> bool:
        if len(text) <= _SHORT:
            return False
        said = text.strip()
        return said in self._before or said in self._bare or said.startswith(self._before[:_SHORT])

    def _replace(self, _: str) -> str:
        if self._placed:
            return ""
        self._placed = True
        return self._after


def _without_numbers(text: str) -> str:
    """Return the text of a Read without its line numbers."""
    lines = text.split("\n")
    return "\n".join(
        rest if sep and number.strip().isdigit() else line
        for line in lines
        for number, sep, rest in [line.partition(_NUMBERED if _NUMBERED in line else "\t")]
    )


# -- Writing, so that `claude --resume` continues with less


_POINTERS = ("parentUuid", "logicalParentUuid", "leafUuid", "sourceToolAssistantUUID")
_PROMPT = ("cache_read_input_tokens", "cache_creation_input_tokens", "input_tokens")
_ENVELOPE = ("isSidechain", "userType", "entrypoint", "cwd", "sessionId", "version", "gitBranch")


class ClaudeCodeFile:
    """A session file of Claude Code in memory."""

    kind = "claude_code"
    format: Format = "anthropic"

    def __init__(self, data: bytes) -> None:
        self._lines = split_lines(data)
        self._known = {
            uuid: line.data
            for line in self._lines
            if line.data is not None and isinstance(uuid := line.data.get("uuid"), str)
        }
        self.facts = TranscriptFacts()
        self.window = window = RecordedWindow()
        for line in self._lines:
            for item in items(line.data, line.number, self.facts) if line.data else ():
                window.take(item)
        # What the program itself attaches to the messages of the branch is not edited.
        found = window.entries(chained=True)
        self.entries = [e for e in found if self._known[e.message_id].get("type") != "attachment"]
        shown = {entry.line for entry in self.entries}
        self.usages = latest_usages(usage for usage in window.usages if usage.line in shown)

    @property
    def session_id(self) -> str | None:
        """The session id of the newest line that has one."""
        found = (line.data.get("sessionId") for line in reversed(self._lines) if line.data)
        return next((name for name in found if isinstance(name, str)), None)

    def write(self, revision: Revision, new_id: str | None = None) -> bytes:
        """Return the file with the revision in it, under another session id if one is given."""
        return b"".join(_renamed(raw, self._old_ids(), new_id) for raw in self._written(revision))

    def _written(self, revision: Revision) -> Iterator[bytes]:
        last = self._last_answer(revision)
        for line in self._lines:
            uuid = None if line.data is None else line.data.get("uuid")
            if uuid in revision.gone:
                continue
            if line.data is None:
                yield line.raw
                continue
            data = self._linked(line.data, revision)
            for addition in revision.before(uuid) if uuid else ():
                new = self._new_line(addition, data)
                yield dump(new).encode() + b"\n"
                data = {**data, "parentUuid": new["uuid"]}
            if isinstance(uuid, str) and uuid in revision.edited:
                data = _edited(data, revision.edited[uuid])
            if uuid in last and revision.reported is not None:
                data = _lowered(data, revision.reported, revision.beside)
            yield line.raw if data is line.data else line.with_data(data)
        yield from self._at_the_end(revision)

    def _last_answer(self, revision: Revision) -> set[str]:
        """The lines of the newest answer that stays and has a usage."""
        known = {usage.reply_id or usage.line for usage in self.usages}
        stay = [
            (entry.reply_id or entry.line, entry.message_id)
            for entry in self.entries
            if (entry.reply_id or entry.line) in known and entry.message_id not in revision.gone
        ]
        return {message_id for answer, message_id in stay if answer == stay[-1][0]}

    def _at_the_end(self, revision: Revision) -> Iterator[bytes]:
        for addition in revision.before(None):
            last = self._known[self.entries[-1].message_id]
            here = {**last, "parentUuid": self._alive(last["uuid"], revision)}
            yield dump(self._new_line(addition, here)).encode() + b"\n"

    def _linked(self, data: dict[str, Any], revision: Revision) -> dict[str, Any]:
        """Return the line with its pointers on lines that remain; the same object if they all do."""
        moved = {
            name: self._alive(data[name], revision)
            for name in _POINTERS
            if data.get(name) in revision.gone
        }
        return {**data, **moved} if moved else data

    def _alive(self, uuid: Any, revision: Revision) -> str | None:
        seen = set()
        while uuid in revision.gone and uuid not in seen:
            seen.add(uuid)
            uuid = self._known[uuid].get("parentUuid")
        return uuid if isinstance(uuid, str) else None

    def _new_line(self, addition: Addition, near: dict[str, Any]) -> dict[str, Any]:
        """Return a new line in the envelope of its neighbour, with an id derived from both."""
        role = addition.data["role"]
        name = uuid5(NAMESPACE_URL, f"ctxgc:{near.get('uuid')}:{dump(addition.data)}")
        return {
            "parentUuid": near.get("parentUuid"),
            **{key: near[key] for key in _ENVELOPE if key in near},
            "type": role,
            "message": addition.data,
            **({"isMeta": True} if role == "user" else {}),
            "uuid": str(name),
            "timestamp": near.get("timestamp"),
        }

    def _old_ids(self) -> set[str]:
        ids = (line.data.get("sessionId") for line in self._lines if line.data is not None)
        return {name for name in ids if isinstance(name, str)}


def _edited(data: dict[str, Any], said: dict[str, Any]) -> dict[str, Any]:
    changed = {**data, "message": {**data["message"], "content": said["content"]}}
    if "toolUseResult" in data:
        changed["toolUseResult"] = edited_result(
            data["toolUseResult"], _result_text(data["message"]), _result_text(said)
        )
    return changed


def _lowered(data: dict[str, Any], most: int, beside: int) -> dict[str, Any]:
    """Return the line with a usage of at most so many prompt tokens; the same object if it has no more."""
    message = data["message"]
    usage = message.get("usage")
    if not isinstance(usage, dict):
        return data
    over = sum(tokens_of(usage, key) for key in _PROMPT) - most
    if over <= 0:
        return data
    shorter = subtract_tokens(usage, _PROMPT, over)
    lives = usage.get("cache_creation")
    if isinstance(lives, dict):
        written = tokens_of(usage, _PROMPT[1]) - tokens_of(shorter, _PROMPT[1])
        shorter["cache_creation"] = subtract_tokens(lives, tuple(lives), written)
    return with_beside({**data, "message": {**message, "usage": shorter}}, beside)


def _result_text(message: dict[str, Any]) -> str:
    """Return the text of the results in a message."""
    texts = []
    for block in content_blocks(message):
        content = block.get("content") if block.get("type") == "tool_result" else None
        inner: list[Any] = content if isinstance(content, list) else [{"text": content}]
        said = [part.get("text") for part in inner if isinstance(part, dict)]
        texts += [text for text in said if isinstance(text, str)]
    return "\n".join(texts)


def _renamed(raw: bytes, old: set[str], new: str | None) -> bytes:
    """Return the line with another session id. Quotes in a text are escaped, so only keys match."""
    if new is None or b'"sessionId"' not in raw or not old:
        return raw
    names = b"|".join(re.escape(name.encode()) for name in sorted(old))
    pattern = rb'("sessionId"\s*:\s*")(?:' + names + rb')"'
    return re.sub(pattern, lambda found: found[1] + new.encode() + b'"', raw)
