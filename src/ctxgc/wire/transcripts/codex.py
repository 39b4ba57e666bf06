"""Codex's rollout files: one JSON object per line, messages as items of the Responses API.

A line is `{"timestamp", "type", "payload"}`. The items are in `response_item` lines; a `compacted` line
holds the whole next window, or in older files only its summary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from ctxgc.core import Format
from ctxgc.wire import dump
from ctxgc.wire.transcripts.harness import is_harness
from ctxgc.wire.transcripts.items import (
    Compaction,
    Item,
    Rollback,
    TranscriptEntry,
    TranscriptFacts,
    Usage,
    beside_of,
    latest_usages,
    parse_time,
    subtract_tokens,
    tokens_of,
    with_beside,
)
from ctxgc.wire.transcripts.revision import FileLine, Revision, split_lines
from ctxgc.wire.transcripts.window import RecordedWindow

_KINDS = frozenset(
    ("session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state",
     "token_usage_record", "inter_agent_communication", "security_risk_score")
)  # fmt: skip
_RECORDS = ("ghost_snapshot", "compaction_trigger")
"""Items in the file that are not sent."""


def is_codex(line: Mapping[str, Any]) -> bool:
    """Return whether Codex wrote a line."""
    return line.get("type") in _KINDS and isinstance(line.get("payload"), Mapping)


def entry_of(line: Mapping[str, Any], place: int) -> TranscriptEntry | None:
    """Return the item of a line, named by its place; None if the line has none."""
    payload = line.get("payload")
    if line.get("type") != "response_item" or not isinstance(payload, Mapping):
        return None
    return _entry(payload, place, 0, parse_time(line.get("timestamp")))


def items(line: Mapping[str, Any], number: int, facts: TranscriptFacts) -> Iterator[Item]:
    """Yield what a line holds, and note what it says about the session."""
    payload, at = line["payload"], parse_time(line.get("timestamp"))
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
) -> TranscriptEntry | None:
    kind = item.get("type")
    if not isinstance(kind, str) or kind in _RECORDS:
        return None
    return TranscriptEntry(
        message_id=f"line-{number}" if not place else f"line-{number}-{place}",
        data=dict(item),
        format="responses",
        written_at=at,
        line=number,
        is_aside=_is_aside(item),
        is_summary=summary,
    )


def _is_aside(item: Mapping[str, Any]) -> bool:
    """Return whether Codex itself inserted a user item."""
    content = item.get("content")
    if item.get("role") != "user" or not isinstance(content, list) or not content:
        return False
    return is_harness(content[:1])


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


def _note_session(payload: Mapping[str, Any], facts: TranscriptFacts) -> None:
    facts.note("session_id", payload.get("id") or payload.get("session_id"))
    facts.note("project", payload.get("cwd"))
    facts.note("version", payload.get("cli_version"))
    base = payload.get("base_instructions") or payload.get("instructions")
    text = base.get("text") if isinstance(base, Mapping) else base
    facts.system = text if isinstance(text, str) else ""
    tools = payload.get("dynamic_tools")
    facts.tools = dump(tools) if isinstance(tools, list) and tools else ""


def _event(
    payload: Mapping[str, Any], number: int, at: datetime | None, facts: TranscriptFacts
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
    # The same count is repeated when only the rate limits changed: its running total shows that.
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


# -- Writing, so that `codex resume` continues with less


_CACHED = ("cached_input_tokens", "cache_write_input_tokens")


class CodexFile:
    """A rollout file in memory. A compaction holds all items of its window in one line."""

    kind = "codex"
    format: Format = "responses"

    def __init__(self, data: bytes) -> None:
        self._lines = split_lines(data)
        self.facts = TranscriptFacts()
        self.window = RecordedWindow()
        self._counts: list[Usage] = []
        for line in self._lines:
            if line.data is not None and is_codex(line.data):
                self._read(line.number, line.data)
        bare = {f"line-{x.number}-1" for x in self._lines if _is_bare_summary(x.data)}
        entries = self.window.entries(chained=False)
        self.entries = [entry for entry in entries if entry.message_id not in bare]
        self.usages = latest_usages(self.window.usages)

    def _read(self, number: int, data: dict[str, Any]) -> None:
        for item in items(data, number, self.facts):
            self.window.take(item)
            if isinstance(item, Usage):
                self._counts.append(item)

    @property
    def session_id(self) -> str | None:
        """The id in the newest `session_meta`."""
        ids = [meta.get("id") for line in self._lines if (meta := _meta(line.data)) is not None]
        return next((name for name in reversed(ids) if isinstance(name, str)), None)

    def write(self, revision: Revision, new_id: str | None = None) -> bytes:
        """Return the file with the revision in it, under another session id if one is given."""
        return b"".join(self._written(revision, new_id))

    def _written(self, revision: Revision, new_id: str | None) -> Iterator[bytes]:
        old, counts = self.session_id, self._last_count()
        for line in self._lines:
            name = f"line-{line.number}"
            if line.data is None:
                yield line.raw
                continue
            for addition in revision.before(name):
                yield _item_line(addition.data, line.data.get("timestamp"))
            if name not in revision.gone:
                data = _revised(line, line.data, revision)
                if line.number in counts and revision.reported is not None:
                    data = _lowered(data, revision.reported, revision.beside)
                if new_id is not None and (meta := _meta(data)) is not None:
                    data = {**data, "payload": _renamed(meta, old, new_id)}
                yield line.raw if data is line.data else line.with_data(data)
        last = self._lines[-1].data if self._lines else None
        for addition in revision.before(None):
            yield _item_line(addition.data, (last or {}).get("timestamp"))

    def _last_count(self) -> set[int]:
        """The lines with the newest count; it is repeated when only rate limits changed."""
        last = {usage.reply_id or usage.line for usage in self._counts[-1:] if self.usages}
        return {usage.line for usage in self._counts if (usage.reply_id or usage.line) in last}


def _lowered(data: dict[str, Any], most: int, beside: int) -> dict[str, Any]:
    """Return the line with a count of at most so many prompt tokens; the same object if it has no more."""
    info = data["payload"]["info"]
    last = info["last_token_usage"]
    cached = sum(tokens_of(last, key) for key in _CACHED)
    over = max(tokens_of(last, "input_tokens"), cached) - most
    if over <= 0:
        return data
    shorter = subtract_tokens(last, _CACHED, over)
    shorter["input_tokens"] = most
    if tokens_of(last, "total_tokens"):
        shorter["total_tokens"] = max(0, tokens_of(last, "total_tokens") - over)
    told = with_beside({**info, "last_token_usage": shorter}, beside)
    return {**data, "payload": {**data["payload"], "info": told}}


def _revised(line: FileLine, data: dict[str, Any], revision: Revision) -> dict[str, Any]:
    """Return the data of a line that stays; the same object if nothing in it changes."""
    name = f"line-{line.number}"
    if name in revision.edited:
        return {**data, "payload": revision.edited[name]}
    history = (
        data["payload"].get("replacement_history") if data.get("type") == "compacted" else None
    )
    if not isinstance(history, list):
        return data
    new = list(_history(history, name, revision))
    return (
        data
        if new == history
        else {**data, "payload": {**data["payload"], "replacement_history": new}}
    )


def _history(history: list[Any], name: str, revision: Revision) -> Iterator[Any]:
    place = 0
    for item in history:
        place += isinstance(item, dict)
        mark = f"{name}-{place}"
        if not isinstance(item, dict):
            yield item
            continue
        yield from (addition.data for addition in revision.before(mark))
        if mark not in revision.gone:
            yield revision.edited.get(mark, item)


def _meta(data: dict[str, Any] | None) -> dict[str, Any] | None:
    if data is None or data.get("type") != "session_meta":
        return None
    payload = data.get("payload")
    return payload if isinstance(payload, dict) else None


def _is_bare_summary(data: dict[str, Any] | None) -> bool:
    """Return whether a compaction has only the text of its summary, as in older files."""
    if data is None or data.get("type") != "compacted" or not isinstance(data.get("payload"), dict):
        return False
    return not isinstance(data["payload"].get("replacement_history"), list)


def _renamed(meta: dict[str, Any], old: str | None, new: str) -> dict[str, Any]:
    return {
        key: new if value == old and isinstance(value, str) else value
        for key, value in meta.items()
    }


def _item_line(item: dict[str, Any], at: Any) -> bytes:
    return dump({"timestamp": at, "type": "response_item", "payload": item}).encode() + b"\n"
