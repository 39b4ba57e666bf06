"""How much a line of a conversation is worth keeping word for word."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from ctxgc.core.identifiers import identifiers, looks_like_path

# A line is judged by its beginning, so that one endless line costs no more than a long one.
_SCAN = 2_000

_ROLE = re.compile(
    r"\s*(?:\[|#+ )?(user|human|assistant|system|tool|developer)\b[^:\]\n]{0,40}[:\]]",
    re.IGNORECASE,
)
_DECISION = re.compile(
    r"\b(?:decid|decision|chose|choose|agreed|must|never|always|do not|don't|because|instead of|"
    r"we will|we'll|plan is|todo|still open|next step)",
    re.IGNORECASE,
)
_ERROR = re.compile(
    r"\b(?:error|exception|traceback|fail(?:ed|ure|s)?|fatal|panic|denied|refused|exit (?:code|status))"
    r"|\w(?:Error|Exception)\b",
    re.IGNORECASE,
)
_COMMAND = re.compile(
    r"\s*(?:[$%>] |(?:sudo|git|pip|uv|npm|npx|yarn|make|cargo|go|docker|kubectl|python3?|pytest|"
    r"curl|ls|cd|grep|rg|sed|cat) \S)"
)
_NUMBER = re.compile(r"\d")

USER, DECISION, ERROR, COMMAND, PATH, NAMES, NUMBER, REST = 10.0, 8.0, 7.0, 6.0, 5.0, 3.0, 2.0, 0.5


class Line(msgspec.Struct, frozen=True, gc=False):
    """A line with its place and its worth."""

    index: int
    text: str
    worth: float


def worthy_lines(conversation: str) -> Iterator[Line]:
    """Yield each line that says something not said before, with its worth."""
    role, seen = "", set[str]()
    for index, text in enumerate(conversation.split("\n")):
        role = _role(text) or role
        bare = text.strip()
        if not bare or bare in seen:
            continue
        seen.add(bare)
        yield Line(index, text, worth(text, is_user=role in ("user", "human")))


def worth(text: str, *, is_user: bool = False) -> float:
    """Return the worth of a line: the highest of the classes that it belongs to."""
    if is_user:
        return USER
    head = text[:_SCAN]
    for pattern, value in ((_DECISION, DECISION), (_ERROR, ERROR)):
        if pattern.search(head):
            return value
    if _COMMAND.match(head):
        return COMMAND
    names = identifiers(head, limit=64)
    if any(looks_like_path(name) for name in names):
        return PATH
    if names:
        return NAMES
    return NUMBER if _NUMBER.search(head) else REST


def _role(text: str) -> str:
    found = _ROLE.match(text)
    return found.group(1).lower() if found else ""
