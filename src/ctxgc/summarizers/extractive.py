"""A summarizer without a model: it keeps the most important lines, word for word."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby

import msgspec

from ctxgc.core import identifiers, looks_like_ours, looks_like_path
from ctxgc.errors import ConfigError
from ctxgc.summarizers.base import TextCounter

# A line is judged by its start, so that an endless line costs no more than a long one.
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


class ExtractiveSummarizer:
    """Picks lines of the conversation, in order and unchanged, up to a number of tokens.

    User requests come first, then decisions, errors, commands, paths, identifiers and numbers, each
    kind with half of what those before it left; the remainder is filled in the same order. The limit is
    `max_tokens`, else `ratio` of the input. The same text gives the same summary.

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
                f"max_tokens must be at least 1, got {max_tokens}",
                hint="pass 1 or more",
                key="max_tokens",
            )
        if not 0 < ratio < 1:
            raise ConfigError(
                f"ratio must be between 0 and 1, got {ratio}",
                hint="pass a share below 1",
                key="ratio",
            )
        self._max_tokens = max_tokens
        self._ratio = ratio
        self._count = _estimate if counter is None else counter.count

    def __call__(self, conversation: str) -> str:
        """Return the chosen lines; empty if not even one fits."""
        limit = self._max_tokens or int(self._count(conversation) * self._ratio)
        chosen = self._choose(weighted_lines(conversation), limit)
        return "\n".join(line.text for line in sorted(chosen, key=lambda line: line.index))

    def _choose(self, lines: Iterable[WeightedLine], limit: int) -> list[WeightedLine]:
        ranked = sorted(lines, key=lambda line: (-line.weight, line.index))
        # Chatter is not used as filler: it is kept only if there is nothing else.
        telling = [line for line in ranked if line.weight > REST] or ranked
        selection = _Selection(self._count)
        for _, kind in groupby(telling, key=lambda line: line.weight):
            # Half of what is left for each kind, so that one long paste does not take it all.
            selection.fill(kind, selection.used + (limit - selection.used) // 2)
        selection.fill(telling, limit)
        return list(selection.lines.values())

    def __repr__(self) -> str:
        return f"ExtractiveSummarizer(max_tokens={self._max_tokens}, ratio={self._ratio})"


class _Selection:
    """The chosen lines, and the tokens that they cost."""

    def __init__(self, count: Callable[[str], int]) -> None:
        self.lines: dict[int, WeightedLine] = {}
        self.used = 0
        self._count = count

    def fill(self, lines: Iterable[WeightedLine], limit: int) -> None:
        for line in lines:
            if line.index in self.lines:
                continue
            cost = self._count(line.text) + 1  # with the line break that joins it to the next
            if self.used + cost <= limit:
                self.used += cost
                self.lines[line.index] = line


def _estimate(text: str) -> int:
    return len(text) // 4 + 1


# -- The weight of a line


class WeightedLine(msgspec.Struct, frozen=True, gc=False):
    """A line with its index and its weight."""

    index: int
    text: str
    weight: float


def weighted_lines(conversation: str) -> Iterator[WeightedLine]:
    """Yield each line that does not repeat an earlier one, with its weight, but none that looks like ours."""
    role, seen = "", set[str]()
    for index, text in enumerate(conversation.split("\n")):
        role = _role(text) or role
        bare = text.strip()
        if not bare or bare in seen or looks_like_ours(text):
            continue
        seen.add(bare)
        yield WeightedLine(index, text, line_weight(text, is_user=role in ("user", "human")))


def line_weight(text: str, *, is_user: bool = False) -> float:
    """Return the weight of a line: the highest of its classes."""
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
