"""Around a compaction: the transcript is saved before it, and its roots are quoted after it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from ctxgc.agents.checkpoints import save
from ctxgc.agents.events import HookSettings, log_event
from ctxgc.agents.transcript import TranscriptText, end_text, read_transcript, size_of
from ctxgc.session import moved_handles

# -- The roots of a conversation as text


MOST_TEXT = 6_000
_MOST_QUOTE = 700
MOST_LINE = 300
_LAST_REQUESTS = 3
_LAST_ANSWERS = 200
_MOST_EACH = 8

_CONSTRAINT = re.compile(
    r"\b(?:must|never|always|do not|don't|only|make sure|keep|without|at most|at least|required?|"
    r"constraint|not allowed|forbidden)\b",
    re.IGNORECASE,
)
_DECISION = re.compile(
    r"\b(?:decided?|decision|chose|chosen|we will|we'll use|i'll use|going with|settled on|"
    r"agreed|the plan is|root cause)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_FENCED = re.compile(r"^```.*?(?:^```|\Z)", re.DOTALL | re.MULTILINE)
_PARAGRAPH = re.compile(r"\n[ \t]*\n")
_PASTED = re.compile(
    r"^[ \t]*(?:[$%\u276f] |[\w.-]{1,64}@[\w.-]{1,64}[:~]|Traceback |File \"|[\u00d7\u2570]|"
    r"(?:error|warning|hint|note)\b[^\n:]{0,80}: )",
    re.IGNORECASE | re.MULTILINE,
)
"""A line of a terminal: a prompt, or how programs begin what they complain about."""
_INDENTED = re.compile(r"^(?: {4}|\t)(?![ \t]*(?:[-*+]|\d{1,3}[.)]) ).*$", re.MULTILINE)
_WRAPPED = re.compile(r"\n(?=[a-z])")


def _roots_text(
    said: Sequence[TranscriptText], moved: Iterable[tuple[str, str]], recall: str
) -> str:
    """Return the roots of a conversation, most important first; empty when there are none.

    Args:
        said: what the transcript says, in order.
        moved: handles of what was moved out, each with what it was.
        recall: the tool that recalls a handle.
    """
    # A compaction repeats what it keeps.
    requests = list(dict.fromkeys(_texts(said, "user")))
    if not requests:
        return ""
    parts = [
        _section("Task (the first request)", [_quote(requests[0], _MOST_QUOTE)]),
        _section(
            "Newest requests", [_quote(r, _MOST_QUOTE) for r in requests[1:][-_LAST_REQUESTS:]]
        ),
        _section("Constraints from the user", _sentences(requests, _CONSTRAINT)),
        _section("Decisions", _sentences(_texts(said, "assistant")[-_LAST_ANSWERS:], _DECISION)),
        _section("Open errors", _open_errors(said)),
        _section(
            f"Moved out; {recall}(handle=...) shows it",
            [f"{handle}: {what}" for handle, what in moved][-_MOST_EACH:],
        ),
    ]
    return _fitting([part for part in parts if part])


def _moved_out(texts: Iterable[str]) -> list[tuple[str, str]]:
    """Return the handles that tombstones in texts name, each once, with what was moved out."""
    found: dict[str, str] = {}
    for text in texts:
        found.update(moved_handles(text))
    return list(found.items())


def _texts(said: Sequence[TranscriptText], source: str) -> list[str]:
    return [each.text for each in said if each.source == source]


def _open_errors(said: Sequence[TranscriptText]) -> list[str]:
    """Return the newest errors since the last user message."""
    last = max((n for n, each in enumerate(said) if each.source == "user"), default=0)
    errors = [_quote(each.text, MOST_LINE) for each in said[last:] if each.source == "error"]
    return list(dict.fromkeys(errors))[-3:]


def _sentences(texts: Iterable[str], pattern: re.Pattern[str]) -> list[str]:
    found = [
        _quote(sentence, MOST_LINE)
        for text in texts
        for sentence in _SENTENCE.split(_own_words(text[:20_000]))
        if pattern.search(sentence)
    ]
    return list(dict.fromkeys(found))[-_MOST_EACH:]


def _own_words(text: str) -> str:
    """Return a text without what its author pasted (code, a terminal), and with wrapped lines joined."""
    own = (
        _INDENTED.sub("", paragraph)
        for paragraph in _PARAGRAPH.split(_FENCED.sub("\n\n", text))
        if not _PASTED.search(paragraph)
    )
    return "\n\n".join(_WRAPPED.sub(" ", paragraph) for paragraph in own)


def _section(title: str, lines: Sequence[str]) -> str:
    return "\n".join([f"{title}:", *(f"- {line}" for line in lines)]) if lines else ""


def _quote(text: str, most: int) -> str:
    words = " ".join(text.split())
    return words if len(words) <= most else f"{words[:most]} [... {len(words) - most} characters]"


def _fitting(parts: list[str]) -> str:
    kept, room = [], MOST_TEXT
    for part in parts:
        if len(part) > room:
            break
        kept.append(part)
        room -= len(part) + 1
    return "\n".join(kept)


Json = dict[str, Any]

OPENING = (
    "ctxgc: the conversation was just compacted. Key points quoted from it, as a reminder and not as "
    "new instructions:"
)


def pre_compact(settings: HookSettings, said: Json) -> None:
    """Save the transcript as it is now; the agent gets no answer and goes on."""
    save(settings, said, said.get("trigger"))


def session_start(settings: HookSettings, said: Json) -> Json | None:
    """Return the roots of the conversation after a compaction; None at any other start."""
    path = said.get("transcript_path")
    if said.get("source") != "compact" or not size_of(path):
        return None
    roots = _roots_text(read_transcript(path), _moved_out([end_text(path)]), settings.recall)
    if not roots:
        return None
    log_event(settings, "session-start", f"quoted {len(roots)} characters of roots")
    text = f"{OPENING}\n{roots}"
    return {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}}
