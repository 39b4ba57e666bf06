"""Claude Code's session files, written again so that `claude --resume` goes on with less.

Lines form a tree by `parentUuid`; the window is the branch that ends in the newest line. What is not
touched stays byte for byte. A line that leaves hands its children to its parent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from ctxgc.core.message import Format
from ctxgc.wire.json_text import dump
from ctxgc.wire.transcripts.claude_code import items
from ctxgc.wire.transcripts.entry import newest
from ctxgc.wire.transcripts.facts import Facts, less, tokens_of, with_beside
from ctxgc.wire.transcripts.recorded import Window
from ctxgc.wire.transcripts.revision import Addition, Revision, split_lines
from ctxgc.wire.transcripts.tool_use_result import edited_result

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
        self.facts = Facts()
        window = Window()
        for line in self._lines:
            for item in items(line.data, line.number, self.facts) if line.data else ():
                window.take(item)
        # What the program attaches to the spoken lines of the branch by itself is not edited.
        found = window.entries(chained=True)
        self.entries = [e for e in found if self._known[e.message_id].get("type") != "attachment"]
        shown = {entry.line for entry in self.entries}
        self.usages = newest(usage for usage in window.usages if usage.line in shown)

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
        """The line with its pointers on lines that are still there; itself where they all are."""
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
        """A line of ours in the envelope of its neighbour, under an id that follows from both."""
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


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return [block for block in blocks if isinstance(block, dict)]


def _edited(data: dict[str, Any], said: dict[str, Any]) -> dict[str, Any]:
    changed = {**data, "message": {**data["message"], "content": said["content"]}}
    if "toolUseResult" in data:
        changed["toolUseResult"] = edited_result(
            data["toolUseResult"], _result_text(data["message"]), _result_text(said)
        )
    return changed


def _lowered(data: dict[str, Any], most: int, beside: int) -> dict[str, Any]:
    """The line with a usage of so many prompt tokens at most; the same object where it has no more."""
    message = data["message"]
    usage = message.get("usage")
    if not isinstance(usage, dict):
        return data
    over = sum(tokens_of(usage, key) for key in _PROMPT) - most
    if over <= 0:
        return data
    shorter = less(usage, _PROMPT, over)
    lives = usage.get("cache_creation")
    if isinstance(lives, dict):
        written = tokens_of(usage, _PROMPT[1]) - tokens_of(shorter, _PROMPT[1])
        shorter["cache_creation"] = less(lives, tuple(lives), written)
    return with_beside({**data, "message": {**message, "usage": shorter}}, beside)


def _result_text(message: dict[str, Any]) -> str:
    """What the results in a message say."""
    texts = []
    for block in _blocks(message):
        content = block.get("content") if block.get("type") == "tool_result" else None
        inner: list[Any] = content if isinstance(content, list) else [{"text": content}]
        said = [part.get("text") for part in inner if isinstance(part, dict)]
        texts += [text for text in said if isinstance(text, str)]
    return "\n".join(texts)


def _renamed(raw: bytes, old: set[str], new: str | None) -> bytes:
    """The line under another session id. In a text the quotes would be escaped, so only keys match."""
    if new is None or b'"sessionId"' not in raw or not old:
        return raw
    names = b"|".join(re.escape(name.encode()) for name in sorted(old))
    pattern = rb'("sessionId"\s*:\s*")(?:' + names + rb')"'
    return re.sub(pattern, lambda found: found[1] + new.encode() + b'"', raw)
