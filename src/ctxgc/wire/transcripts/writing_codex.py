"""Codex's rollout files, written again so that `codex resume` goes on with less."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ctxgc.core.message import Format
from ctxgc.wire.json_text import dump
from ctxgc.wire.transcripts.codex import is_codex, items
from ctxgc.wire.transcripts.entry import Usage, newest
from ctxgc.wire.transcripts.facts import Facts, less, tokens_of, with_beside
from ctxgc.wire.transcripts.recorded import Window
from ctxgc.wire.transcripts.revision import Line, Revision, split_lines

_CACHED = ("cached_input_tokens", "cache_write_input_tokens")


class CodexFile:
    """A rollout file in memory. A compaction brings the items of its window in one line of its own."""

    kind = "codex"
    format: Format = "responses"

    def __init__(self, data: bytes) -> None:
        self._lines = split_lines(data)
        self.facts = Facts()
        self._window = Window()
        self._counts: list[Usage] = []
        for line in self._lines:
            if line.data is not None and is_codex(line.data):
                self._read(line.number, line.data)
        bare = {f"line-{x.number}-1" for x in self._lines if _is_bare_summary(x.data)}
        entries = self._window.entries(chained=False)
        self.entries = [entry for entry in entries if entry.message_id not in bare]
        self.usages = newest(self._window.usages)

    def _read(self, number: int, data: dict[str, Any]) -> None:
        for item in items(data, number, self.facts):
            self._window.take(item)
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
        """The lines that tell the newest count; it is written again when only rate limits changed."""
        last = {usage.reply_id or usage.line for usage in self._counts[-1:] if self.usages}
        return {usage.line for usage in self._counts if (usage.reply_id or usage.line) in last}


def _lowered(data: dict[str, Any], most: int, beside: int) -> dict[str, Any]:
    """The line with a count of so many prompt tokens at most; the same object where it has no more."""
    info = data["payload"]["info"]
    last = info["last_token_usage"]
    cached = sum(tokens_of(last, key) for key in _CACHED)
    over = max(tokens_of(last, "input_tokens"), cached) - most
    if over <= 0:
        return data
    shorter = less(last, _CACHED, over)
    shorter["input_tokens"] = most
    if tokens_of(last, "total_tokens"):
        shorter["total_tokens"] = max(0, tokens_of(last, "total_tokens") - over)
    told = with_beside({**info, "last_token_usage": shorter}, beside)
    return {**data, "payload": {**data["payload"], "info": told}}


def _revised(line: Line, data: dict[str, Any], revision: Revision) -> dict[str, Any]:
    """The data of a line that stays; the same object where nothing in it changes."""
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
    """Older files have only the text of a summary, which no item stands for."""
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
