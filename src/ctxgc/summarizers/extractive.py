"""A summarizer without a model: it keeps the lines that matter most, word for word."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby

import msgspec

from ctxgc.core import identifiers, looks_like_path
from ctxgc.errors import ConfigError
from ctxgc.summarizers.base import TextCounter

# -- How much a line of a conversation is worth keeping word for word


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


class WeighedLine(msgspec.Struct, frozen=True, gc=False):
    """A line with its place and its worth."""

    index: int
    text: str
    worth: float


def worthy_lines(conversation: str) -> Iterator[WeighedLine]:
    """Yield each line that says something not said before, with its worth."""
    role, seen = "", set[str]()
    for index, text in enumerate(conversation.split("\n")):
        role = _role(text) or role
        bare = text.strip()
        if not bare or bare in seen:
            continue
        seen.add(bare)
        yield WeighedLine(index, text, worth(text, is_user=role in ("user", "human")))


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


class ExtractiveSummarizer:
    """Picks lines of the conversation, in order and unchanged, up to a number of tokens.

    User requests come first, then decisions, errors, commands, paths, identifiers and numbers, each
    kind with half of what those before it left; what then remains goes in the same order. The limit
    is `max_tokens`, else `ratio` of what comes in. The same text gives the same summary.

    Raises:
        ConfigError: `max_tokens` is below 1, or `ratio` is not between 0 and 1.
    """

    def __init__(
        self,
        max_tokens: int | None = None,
        *,
        ratio: float = 0.25,
        counter: TextCounter | None = None,
    ) -> None:
        if max_tokens is not None and max_tokens < 1:
            raise ConfigError(
                f"max_tokens is {max_tokens}", hint="pass 1 or more", key="max_tokens"
            )
        if not 0 < ratio < 1:
            raise ConfigError(f"ratio is {ratio}", hint="pass a share below 1", key="ratio")
        self._max_tokens = max_tokens
        self._ratio = ratio
        self._count = _estimate if counter is None else counter.count

    def __call__(self, conversation: str) -> str:
        """Return the chosen lines; empty if not even one fits."""
        limit = self._max_tokens or int(self._count(conversation) * self._ratio)
        chosen = self._choose(worthy_lines(conversation), limit)
        return "\n".join(line.text for line in sorted(chosen, key=lambda line: line.index))

    def _choose(self, lines: Iterable[WeighedLine], limit: int) -> list[WeighedLine]:
        ranked = sorted(lines, key=lambda line: (-line.worth, line.index))
        # Chatter fills no gap: it stays only where there is nothing else.
        telling = [line for line in ranked if line.worth > REST] or ranked
        basket = _Basket(self._count)
        for _, kind in groupby(telling, key=lambda line: line.worth):
            # Half of what is left for each kind, so that one long paste does not take it all.
            basket.fill(kind, basket.used + (limit - basket.used) // 2)
        basket.fill(telling, limit)
        return list(basket.lines.values())

    def __repr__(self) -> str:
        return f"ExtractiveSummarizer(max_tokens={self._max_tokens}, ratio={self._ratio})"


class _Basket:
    """Lines that were taken, and the tokens that they cost."""

    def __init__(self, count: Callable[[str], int]) -> None:
        self.lines: dict[int, WeighedLine] = {}
        self.used = 0
        self._count = count

    def fill(self, lines: Iterable[WeighedLine], limit: int) -> None:
        for line in lines:
            if line.index in self.lines:
                continue
            cost = self._count(line.text) + 1  # with the line break that joins it to the next
            if self.used + cost <= limit:
                self.used += cost
                self.lines[line.index] = line


def _estimate(text: str) -> int:
    return len(text) // 4 + 1
