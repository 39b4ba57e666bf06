"""Sniffing: what kind of transcript a file is, by what stands in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from ctxgc.core.message import Format
from ctxgc.wire.transcripts import claude_code, codex, plain
from ctxgc.wire.transcripts.decoding import decode
from ctxgc.wire.transcripts.documents import LISTS

TranscriptKind = Literal["claude_code", "codex", "plain"]
Shape = Literal["lines", "list", "messages", "input"]

HEAD = 256 << 10
_SAMPLE = 200


class Sniffed(msgspec.Struct, frozen=True, kw_only=True):
    """What the beginning of a file shows. `format` is only a guess until a message marks it."""

    kind: TranscriptKind
    is_document: bool
    format: Format


def sniff(head: bytes) -> Sniffed | None:
    """Return what a file is that begins like this; None if that is no transcript."""
    said = [line for line, _ in map(decode, head.split(b"\n")[:_SAMPLE]) if line is not None]
    kind = _kind(said)
    begins = head.lstrip()[:1]
    if kind is not None and begins != b"[" and not _is_document(said):
        return Sniffed(kind=kind, is_document=False, format=_format(kind, said))
    if begins in (b"[", b"{"):
        return Sniffed(kind="plain", is_document=True, format="openai")
    return None


def kind_of(line: Mapping[str, Any]) -> TranscriptKind | None:
    """Return what wrote a line; None if it is neither an agent's nor a message."""
    if claude_code.is_claude_code(line):
        return "claude_code"
    if codex.is_codex(line):
        return "codex"
    return "plain" if plain.is_plain(line) else None


def _kind(lines: list[dict[str, Any]]) -> TranscriptKind | None:
    """An agent's line decides; lines that anybody could have written count only without one."""
    kinds = [kind for kind in map(kind_of, lines) if kind is not None]
    return next((kind for kind in kinds if kind != "plain"), kinds[0] if kinds else None)


def _format(kind: TranscriptKind, lines: list[dict[str, Any]]) -> Format:
    if kind == "claude_code":
        return "anthropic"
    if kind == "codex":
        return "responses"
    return plain.format_of(line for line in lines if plain.is_plain(line))


def _is_document(lines: list[dict[str, Any]]) -> bool:
    """A first line that holds a list of messages is the whole document."""
    return bool(lines) and any(isinstance(lines[0].get(name), list) for name in LISTS)
