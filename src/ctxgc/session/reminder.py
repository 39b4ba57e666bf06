"""The roots of a conversation as text: hooks quote them after a compaction, the proxy answers one with them.

Only quotes: the task, the newest requests, constraints, decisions, open errors and the handles of what left.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ctxgc.core import describe

if TYPE_CHECKING:
    from ctxgc.core import ContextSegment
    from ctxgc.session.session import Session

Said = tuple[str, str]
"""A text of a conversation, after its source: user, assistant, error or summary."""

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


def roots_text(
    said: Sequence[Said],
    moved: Sequence[tuple[str, str]],
    recall: str,
    most_text: int = MOST_TEXT,
) -> str:
    """Return the roots of a conversation, most important first; empty when there are none.

    Args:
        said: what was said, in order.
        moved: handles of what was moved out, each with what it was.
        recall: the tool that recalls a handle.
        most_text: how many characters there may be; sections that do not fit are left out.
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
            [f"{handle}: {what}" for handle, what in moved],
        ),
    ]
    return _fitting([part for part in parts if part], most_text)


def _texts(said: Sequence[Said], source: str) -> list[str]:
    return [text for origin, text in said if origin == source]


def _open_errors(said: Sequence[Said]) -> list[str]:
    """Return the newest errors since the last user message."""
    last = max((n for n, (source, _) in enumerate(said) if source == "user"), default=0)
    errors = [_quote(text, MOST_LINE) for source, text in said[last:] if source == "error"]
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


def _fitting(parts: list[str], most: int) -> str:
    kept, room = [], most
    for part in parts:
        if len(part) > room:
            break
        kept.append(part)
        room -= len(part) + 1
    return "\n".join(kept)


# -- The roots of a session


MOST_OF_SESSION = 24_000
_MOST_MOVED = 24


def session_roots(session: Session, recall: str | None, is_prompt: Callable[[str], bool]) -> str:
    """Return the roots of all that came into a session, whether it left the view or not.

    Its newest tool results are named with their handles, for `recall` to show once they have left.

    Args:
        session: the session.
        recall: the tool that recalls a handle; without one no handle is named.
        is_prompt: tells what is not the user's own, such as the request for a summary.
    """
    segments = session.segments()
    said = [each for segment in segments for each in _said(segment, is_prompt)]
    stash = session.inspect().stash
    results = [
        (stash.handle(each.segment_id), f"{describe(each)}, {each.tokens or 0} tokens")
        for each in segments
        if each.type in ("code", "log") and each.derived_from is None
    ]
    last = _texts(said, "assistant")[-_LAST_REQUESTS:]
    moved = results[-_MOST_MOVED:] if recall else []
    parts = [
        roots_text(said, moved, recall or "", MOST_OF_SESSION),
        _section("Said last by the assistant", [_quote(text, _MOST_QUOTE) for text in last]),
    ]
    return "\n".join(part for part in parts if part)


def is_machine(text: str) -> bool:
    """Return whether an agent wrote a text in the user's name: reminders, commands, environment."""
    return text.lstrip().startswith("<")


def _said(segment: ContextSegment, is_prompt: Callable[[str], bool]) -> Iterator[Said]:
    is_said = segment.part == "text" and segment.derived_from is None
    if segment.failed:
        yield ("error", segment.text)
    elif is_said and segment.role in ("user", "assistant") and not is_machine(segment.text):
        yield ("machine" if is_prompt(segment.text) else segment.role, segment.text)
