"""A session of one coding agent as the other writes it: Claude Code and Codex, there and back.

What is carried over is the window that the agent would continue with: what the user and the model said,
calls with their results, and images. What only the agent itself can use stays behind, and is counted:
thinking (its provider signed it), instructions and notes of the agent, tools that the provider ran.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal
from uuid import NAMESPACE_URL, uuid5

import msgspec
from msgspec.structs import replace

from ctxgc.core import Format
from ctxgc.errors import TranscriptError
from ctxgc.wire import dump, repair, validate
from ctxgc.wire.blocks import result_text
from ctxgc.wire.transcripts.items import content_blocks
from ctxgc.wire.transcripts.transcript import Transcript
from ctxgc.wire.transcripts.window import RecordedMessage, RecordedWindow, whole_messages

AgentKind = Literal["claude_code", "codex"]
Json = dict[str, Any]

_FORMATS: dict[str, Format] = {"claude_code": "anthropic", "codex": "responses"}
_NAMES = {"claude_code": "Claude Code", "codex": "Codex"}


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """One thing in a conversation, in no provider's words.

    `kind` is text, image (`text` is its address), call (`text` is its arguments) or result.
    """

    kind: Literal["text", "image", "call", "result"]
    role: Literal["user", "assistant"]
    text: str = ""
    name: str = ""
    call_id: str = ""
    images: tuple[str, ...] = ()
    failed: bool = False
    at: datetime | None = None


class ConvertedTranscript(msgspec.Struct, frozen=True, kw_only=True):
    """A session as the other agent writes it; `left` counts what stayed behind, by its name."""

    data: bytes
    messages: int
    calls: int
    left: dict[str, int]
    fixes: list[str]


def convert_transcript(
    transcript: Transcript,
    to: AgentKind,
    *,
    session_id: str,
    project: str,
    at: datetime,
    retell: Callable[[str], str] = str,
) -> ConvertedTranscript:
    """Return a session as another agent writes it, ready to be resumed.

    Args:
        transcript: the session.
        to: the agent that shall continue it.
        session_id: the id of the new session, a UUID.
        project: the folder that the agent works in.
        at: the time of the new session, and of messages that have none.
        retell: gives what the new reader is shown of a text or a result.

    The newest answer carries the size of the last request, since agents decide by it when to compact.

    Raises:
        TranscriptError: the session is of this agent already, or of none, or nothing in it can be
            carried over.
    """
    if transcript.kind == to or transcript.kind not in _FORMATS:
        raise TranscriptError(
            f"a session of {_NAMES.get(transcript.kind, 'no known agent')} is not converted to {_NAMES[to]}",
            hint="name a session of Claude Code or Codex, and the other agent",
        )
    window = RecordedWindow()
    for each in transcript.items():
        window.take(each)
    recorded = list(whole_messages(window.entries(chained=transcript.kind == "claude_code")))
    left: Counter[str] = Counter()
    read = _of_anthropic if transcript.kind == "claude_code" else _of_responses
    said = [_retold(one, retell) for one in _renamed(list(read(recorded, left)))]
    write = _to_responses if to == "codex" else _to_anthropic
    messages, times = write(said, at)
    result = repair(messages, _FORMATS[to])
    if not any(one.kind == "text" and one.role == "user" for one in said):
        raise TranscriptError(
            "the session has no message of a user: there is nothing to continue",
            hint="name another session",
        )
    wrong = validate(result.messages, _FORMATS[to])
    if wrong:
        raise TranscriptError(
            f"the converted session would be refused: {wrong[0].text}",
            hint="run `ctxgc unbrick` on the session first",
        )
    last = window.usages[-1] if window.usages else None
    envelope = Envelope(
        session_id=session_id, project=project, model=transcript.facts.model or "unknown", at=at,
        tokens=last.prompt + last.output if last else 0, title=transcript.facts.title,
    )  # fmt: skip
    lay = _codex_lines if to == "codex" else _claude_lines
    stamps = _times_of(messages, times, result.messages, at)
    return ConvertedTranscript(
        data=b"".join(
            dump(line).encode() + b"\n" for line in lay(result.messages, stamps, envelope)
        ),
        messages=len(result.messages),
        calls=sum(one.kind == "call" for one in said),
        left=dict(left),
        fixes=[f"{fix.action}: {fix.text}" for fix in result.fixes],
    )


def _retold(one: Said, retell: Callable[[str], str]) -> Said:
    return replace(one, text=retell(one.text)) if one.kind in ("text", "result") else one


def _times_of(
    made: Sequence[Json], times: Sequence[datetime], kept: Sequence[Json], at: datetime
) -> list[datetime]:
    """Return the times of messages after a repair; one that was added has the time of the one before."""
    known = {dump(message): time for message, time in zip(made, times, strict=True)}
    found, last = [], times[0] if times else at
    for message in kept:
        last = max(last, known.get(dump(message), last))
        found.append(last)
    return found


# -- Reading


def _of_anthropic(messages: Sequence[RecordedMessage], left: Counter[str]) -> Iterator[Said]:
    for message in messages:
        role = "assistant" if message.data.get("role") == "assistant" else "user"
        for block in content_blocks(message.data):
            found = _of_block(block, role, message.written_at)
            if isinstance(found, str):
                left[found] += 1
            elif found.kind == "text" and message.is_aside and not message.is_summary:
                left["notes of the agent"] += 1
            else:
                yield found


def _of_block(block: Json, role: Any, at: datetime | None) -> Said | str:
    """Return what a block says, or the name of what stays behind."""
    kind = block.get("type")
    if kind == "text" and isinstance(block.get("text"), str):
        is_said = bool(block["text"].strip())
        return Said(kind="text", role=role, text=block["text"], at=at) if is_said else "blank texts"
    if kind in ("image", "document"):
        address = _image_address(block)
        return Said(kind="image", role=role, text=address, at=at) if address else "media"
    if kind == "tool_use" and isinstance(block.get("id"), str):
        given, name = dump(block.get("input") or {}), str(block.get("name"))
        return Said(
            kind="call", role="assistant", text=given, name=name, call_id=block["id"], at=at
        )
    if kind == "tool_result" and isinstance(block.get("tool_use_id"), str):
        text, images = _result(block.get("content"))
        return Said(
            kind="result", role="user", text=text, images=images, at=at,
            call_id=block["tool_use_id"], failed=block.get("is_error") is True,
        )  # fmt: skip
    is_thinking = kind in ("thinking", "redacted_thinking")
    return "thinking" if is_thinking else "blocks that only the provider knows"


def _of_responses(messages: Sequence[RecordedMessage], left: Counter[str]) -> Iterator[Said]:
    for message in messages:
        for found in _of_item(message):
            if isinstance(found, str):
                left[found] += 1
            else:
                yield found


def _of_item(message: RecordedMessage) -> Iterator[Said | str]:
    item, at = message.data, message.written_at
    kind = str(item.get("type", "message"))
    if kind == "message":
        yield from _of_message(item, at, is_aside=message.is_aside)
    elif kind == "reasoning":
        yield "thinking"
    elif kind.endswith("_output") and isinstance(item.get("call_id"), str):
        text, images = _result(item.get("output"))
        yield Said(
            kind="result", role="user", text=text, images=images, call_id=item["call_id"], at=at
        )
    elif kind.endswith("_call") and isinstance(item.get("call_id"), str):
        name = str(item.get("name") or kind.removesuffix("_call"))
        yield Said(
            kind="call", role="assistant", text=_arguments(item), name=name,
            call_id=item["call_id"], at=at,
        )  # fmt: skip
    else:
        yield "items that only the provider knows"


def _of_message(item: Json, at: datetime | None, *, is_aside: bool) -> Iterator[Said | str]:
    role = item.get("role")
    if role not in ("user", "assistant"):
        yield "instructions of the agent"
        return
    if is_aside:
        yield "notes of the agent"
        return
    content = item.get("content")
    blocks = content if isinstance(content, list) else [{"type": "input_text", "text": content}]
    for block in blocks:
        text = block.get("text") if isinstance(block, Mapping) else None
        address = _image_address(block) if isinstance(block, Mapping) else ""
        if isinstance(text, str) and text.strip():
            yield Said(kind="text", role=role, text=text, at=at)
        elif address:
            yield Said(kind="image", role=role, text=address, at=at)
        else:
            yield "blank texts" if isinstance(text, str) else "media"


def _arguments(item: Json) -> str:
    """Return the arguments of a call as the text of a JSON object."""
    given = item.get("arguments") if "arguments" in item else item.get("input", item.get("action"))
    try:
        value = json.loads(given) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        value = None
    return dump(value if isinstance(value, dict) else {"input": given})


def _result(content: Any) -> tuple[str, tuple[str, ...]]:
    """Return the text of a result and the addresses of its images."""
    if isinstance(content, Mapping) and "content" in content:  # older versions of Codex
        content = content["content"]
    if not isinstance(content, list):
        return (
            (content, ()) if isinstance(content, str) else (result_text(content, "output")[0], ())
        )
    blocks = [block for block in content if isinstance(block, dict)]
    images = [address for block in blocks if (address := _image_address(block))]
    rest = [block for block in blocks if not _image_address(block)]
    return result_text(rest, "output")[0], tuple(images)


def _image_address(block: Mapping[str, Any]) -> str:
    """Return the address of an image, with its data in it where the block has it; empty for no image."""
    if block.get("type") == "input_image" and isinstance(block.get("image_url"), str):
        return str(block["image_url"])
    source = block.get("source") if block.get("type") == "image" else None
    if not isinstance(source, Mapping):
        return ""
    if source.get("type") == "base64":
        return f"data:{source.get('media_type')};base64,{source.get('data')}"
    return str(source.get("url") or "")


# -- Ids that both providers take


_SOUND_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_UNSOUND = re.compile(r"[^A-Za-z0-9_-]+")


def _renamed(said: list[Said]) -> list[Said]:
    """Return it with names and ids that every provider takes, each id used for one call only."""
    used: set[str] = set()
    now: dict[str, str] = {}
    found = []
    for number, one in enumerate(said):
        name = one.name
        if one.kind == "call":
            is_sound = _SOUND_ID.fullmatch(one.call_id) and one.call_id not in used
            now[one.call_id] = one.call_id if is_sound else f"call_{number}"
            used.add(now[one.call_id])
            name = _UNSOUND.sub("_", one.name)[:64] or "tool"
        call_id = now.get(one.call_id, one.call_id)
        found.append(msgspec.structs.replace(one, name=name, call_id=call_id))
    return found


# -- Messages of the other provider


_Written = tuple[list[Json], list[datetime]]


def _to_responses(said: Iterable[Said], at: datetime) -> _Written:
    items, times = [], []
    for one in said:
        items.append(_item(one))
        times.append(one.at or at)
    return items, times


def _item(one: Said) -> Json:
    match one.kind:
        case "text":
            kind = "output_text" if one.role == "assistant" else "input_text"
            content = [{"type": kind, "text": one.text}]
            return {"type": "message", "role": one.role, "content": content}
        case "image":
            content = [{"type": "input_image", "image_url": one.text}]
            return {"type": "message", "role": "user", "content": content}
        case "call":
            return {
                "type": "function_call", "name": one.name, "arguments": one.text,
                "call_id": one.call_id,
            }  # fmt: skip
    output: Any = one.text
    if one.images:
        output = [{"type": "input_text", "text": one.text}] if one.text else []
        output += [{"type": "input_image", "image_url": address} for address in one.images]
    return {"type": "function_call_output", "call_id": one.call_id, "output": output}


def _to_anthropic(said: Iterable[Said], at: datetime) -> _Written:
    """Return messages in which the roles alternate, results first in what follows their calls."""
    messages: list[Json] = []
    times: list[datetime] = []
    for one in said:
        block = _block(one)
        if messages and messages[-1]["role"] == one.role:
            messages[-1]["content"].append(block)
            continue
        messages.append({"role": one.role, "content": [block]})
        times.append(one.at or at)
    for message in messages:
        message["content"].sort(key=lambda block: block["type"] != "tool_result")
        if message["role"] == "assistant":
            # Calls end an answer: what was said after them was said before their results.
            message["content"].sort(key=lambda block: block["type"] == "tool_use")
    return messages, times


def _block(one: Said) -> Json:
    match one.kind:
        case "text":
            return {"type": "text", "text": one.text}
        case "image":
            return _image(one.text)
        case "call":
            return {
                "type": "tool_use", "id": one.call_id, "name": one.name,
                "input": json.loads(one.text),
            }  # fmt: skip
    content: Any = one.text
    if one.images:
        content = [{"type": "text", "text": one.text}] if one.text.strip() else []
        content += [_image(address) for address in one.images]
    return {
        "type": "tool_result", "tool_use_id": one.call_id, "content": content,
        **({"is_error": True} if one.failed else {}),
    }  # fmt: skip


_DATA = re.compile(r"data:([^;,]+);base64,")


def _image(address: str) -> Json:
    found = _DATA.match(address)
    if found is None:
        return {"type": "image", "source": {"type": "url", "url": address}}
    source = {"type": "base64", "media_type": found[1], "data": address[found.end() :]}
    return {"type": "image", "source": source}


# -- Lines of the other agent


CLAUDE_VERSION = "2.1.325"
CODEX_VERSION = "0.166.0"
"""Whose files the lines look like."""


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """What the lines of a session say besides its messages."""

    session_id: str
    project: str
    model: str
    at: datetime
    tokens: int
    title: str | None = None

    def name(self, number: int, what: str) -> str:
        """Return an id for a line, the same each time."""
        return str(uuid5(NAMESPACE_URL, f"ctxgc:{self.session_id}:{what}:{number}"))


def _stamp(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _claude_lines(
    messages: Sequence[Json], times: Sequence[datetime], about: Envelope
) -> Iterator[Json]:
    """Yield the lines of Claude Code: a chain, an answer block by block, each result by itself."""
    last: str | None = None
    answers = [n for n, message in enumerate(messages) if message["role"] == "assistant"]
    callers: dict[str, str] = {}
    number = 0
    for place, (message, at) in enumerate(zip(messages, times, strict=True)):
        for content in _pieces(message):
            number += 1
            uuid = about.name(number, "line")
            said: Json = {"role": message["role"], "content": content}
            more: Json = {}
            if message["role"] == "assistant":
                tokens = about.tokens if place == answers[-1] else 0
                said = _answer(said, about, place, tokens)
                callers.update({b["id"]: uuid for b in content if b["type"] == "tool_use"})
            elif isinstance(content, list) and content[0]["type"] == "tool_result":
                more = {"sourceToolAssistantUUID": callers.get(content[0]["tool_use_id"])}
            yield {
                "parentUuid": last, "isSidechain": False, "type": message["role"], "message": said,
                "uuid": uuid, "timestamp": _stamp(at), **more, "userType": "external",
                "entrypoint": "cli", "cwd": about.project, "sessionId": about.session_id,
                "version": CLAUDE_VERSION, "gitBranch": "",
            }  # fmt: skip
            last = uuid
    if about.title:
        yield {"type": "custom-title", "customTitle": about.title, "sessionId": about.session_id}


def _pieces(message: Json) -> Iterator[Any]:
    """Yield the contents of the lines that make up a message."""
    blocks: list[Json] = message["content"]
    if message["role"] == "assistant":
        yield from ([block] for block in blocks)
        return
    yield from ([block] for block in blocks if block["type"] == "tool_result")
    rest = [block for block in blocks if block["type"] != "tool_result"]
    if len(rest) == 1 and rest[0]["type"] == "text":
        yield rest[0]["text"]
    elif rest:
        yield rest


def _answer(said: Json, about: Envelope, place: int, tokens: int) -> Json:
    calls = any(block["type"] == "tool_use" for block in said["content"])
    return {
        "id": f"msg_{about.name(place, 'answer').replace('-', '')[:24]}",
        "type": "message", **said, "model": about.model,
        "stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None,
        "usage": {
            "input_tokens": tokens, "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0, "output_tokens": 0,
        },
    }  # fmt: skip


def _codex_lines(
    messages: Sequence[Json], times: Sequence[datetime], about: Envelope
) -> Iterator[Json]:
    """Yield the lines of Codex: what the session is, its items, and what is shown of them on resuming."""
    meta = {
        "session_id": about.session_id, "id": about.session_id, "timestamp": _stamp(about.at),
        "cwd": about.project, "originator": "ctxgc", "cli_version": CODEX_VERSION, "source": "cli",
    }  # fmt: skip
    yield _codex_line(about.at, "session_meta", meta)
    for item, at in zip(messages, times, strict=True):
        yield _codex_line(at, "response_item", item)
        shown = _shown(item)
        if shown is not None:
            yield _codex_line(at, "event_msg", shown)
    if about.tokens:
        counts = {
            "input_tokens": about.tokens, "cached_input_tokens": 0, "output_tokens": 0,
            "reasoning_output_tokens": 0, "total_tokens": about.tokens,
        }  # fmt: skip
        info = {
            "total_token_usage": counts, "last_token_usage": counts, "model_context_window": None,
        }  # fmt: skip
        last = times[-1] if times else about.at
        count = {"type": "token_count", "info": info, "rate_limits": None}
        yield _codex_line(last, "event_msg", count)


def _codex_line(at: datetime, kind: str, payload: Json) -> Json:
    return {"timestamp": _stamp(at), "type": kind, "payload": payload}


def _shown(item: Json) -> Json | None:
    """Return the event with which Codex shows a message when it resumes; None for calls and results."""
    texts = [b["text"] for b in item.get("content", ()) if isinstance(b.get("text"), str)]
    if item["type"] != "message" or not texts:
        return None
    kind = "user_message" if item["role"] == "user" else "agent_message"
    return {"type": kind, "message": "\n".join(texts)}
