"""The things that a scripted agent fetches: texts of each kind that hold known values among others."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

from ctxgc.testing import Chance

Content = Literal["yaml", "table", "prose", "json", "log"]
CONTENTS: tuple[Content, ...] = ("yaml", "table", "prose", "json", "log")

KEYS = (
    "timeout_ms", "retention_hours", "max_batch", "pool_size", "quota_gb", "burst_limit",
    "lease_seconds", "shard_count", "retry_budget", "warmup_steps",
)  # fmt: skip
_AREAS = (
    "checkout", "billing", "search", "catalog", "payout", "ledger", "notify", "session", "media",
    "pricing", "fraud", "export", "import", "audit", "quota", "geo", "label", "tariff", "claims",
)  # fmt: skip
_REGIONS = ("eu", "us", "apac", "sa", "mea", "nordics", "iberia", "alps")
_WORDS = (
    "annual", "average", "backlog", "balance", "boundary", "capacity", "carrier", "channel",
    "clearance", "collection", "committee", "consignment", "contract", "corridor", "customs",
    "delay", "delivery", "demand", "depot", "desk", "district", "dispatch", "draft", "estimate",
    "exchange", "expense", "forecast", "freight", "function", "harbour", "holiday", "hour",
    "index", "inspection", "interval", "invoice", "journal", "kitchen", "label", "lantern",
    "margin", "market", "measure", "meeting", "method", "morning", "network", "notice", "office",
    "operator", "order", "outline", "output", "parcel", "partner", "passage", "pattern", "period",
    "permit", "platform", "policy", "quarter", "question", "queue", "railway", "rate", "reason",
    "record", "region", "release", "remark", "report", "reserve", "review", "risk", "route",
    "schedule", "season", "section", "segment", "service", "shelf", "signal", "statement",
    "station", "storage", "supplier", "surface", "table", "target", "team", "terminal", "ticket",
    "timetable", "traffic", "transfer", "transit", "update", "valley", "vehicle", "vessel",
    "visit", "volume", "warehouse", "weather", "week", "window", "winter", "workshop",
)  # fmt: skip
_LEVELS = ("INFO", "INFO", "INFO", "DEBUG", "WARN")
_CHARS_PER_TOKEN: dict[Content, float] = {
    "yaml": 2.4, "table": 2.4, "prose": 6.0, "json": 2.4, "log": 2.3,
}  # fmt: skip


class Thing(NamedTuple):
    """One text with the lines of it that an answer may have to quote, by key."""

    name: str
    content: Content
    text: str
    values: dict[str, int]
    lines: dict[str, str]


def make_thing(
    chance: Chance, content: Content, name: str, keys: Sequence[str], tokens: int
) -> Thing:
    """Return a text of about `tokens` tokens with one value for each key, among lines of no use."""
    values = {key: _value(chance) for key in keys}
    write = _WRITERS[content](chance, name)
    lines = {key: write.line(key, value) for key, value in values.items()}
    size = max(0, int(tokens * _CHARS_PER_TOKEN[content]) - sum(map(len, lines.values())))
    rows = list(_until(size, write.filler))
    for line in lines.values():
        rows.insert(chance.randrange(len(rows) + 1), line)
    return Thing(name, content, write.whole(rows), values, lines)


def names(chance: Chance, count: int) -> list[str]:
    """Return the names of so many things, all different."""
    every = [f"{area}-{region}" for area in _AREAS for region in _REGIONS]
    return chance.sample(every, count)


def sentence(chance: Chance) -> str:
    """Return a plain sentence without any figure."""
    words = chance.choices(_WORDS, k=chance.randrange(7, 15))
    return f"{' '.join(words).capitalize()}."


def _value(chance: Chance) -> int:
    """Return a value of two to five digits: not every value looks like an identifier."""
    return chance.randrange(11, 10 ** chance.randrange(2, 6))


def _until(size: int, make: Callable[[], str]) -> Iterator[str]:
    while size > 0:
        row = make()
        size -= len(row) + 1
        yield row


# -- One writer for each kind of content


class _Writer(ABC):
    """Writes lines with a key and a value, lines of no use, and the text around them."""

    def __init__(self, chance: Chance, name: str) -> None:
        self.chance = chance
        self.name = name

    @abstractmethod
    def line(self, key: str, value: int) -> str:
        """Return the line that says the value of a key."""

    @abstractmethod
    def filler(self) -> str:
        """Return a line of no use."""

    @abstractmethod
    def whole(self, rows: list[str]) -> str:
        """Return the text."""

    def _other_key(self) -> str:
        # Numbered, so that no key of a mapping is there twice.
        words = self.chance.sample(_WORDS, 2)
        return f"{words[0]}_{words[1]}_{self.chance.randrange(1_000_000):06d}"


class _Yaml(_Writer):
    def line(self, key: str, value: int) -> str:
        return f"{key}: {value}"

    def filler(self) -> str:
        chance = self.chance
        value = chance.choice(
            [chance.choice(_WORDS), f"{chance.randrange(1, 900)}m", "true", str(_value(chance))]
        )
        return f"{self._other_key()}: {value}"

    def whole(self, rows: list[str]) -> str:
        head = ["apiVersion: v1", "kind: Settings", "metadata:", f"  name: {self.name}", "spec:"]
        return "\n".join([*head, *(f"  {row}" for row in rows)])


class _Json(_Writer):
    def line(self, key: str, value: int) -> str:
        return f"{json.dumps(key)}: {value}"

    def filler(self) -> str:
        chance = self.chance
        value = chance.choice([chance.choice(_WORDS), chance.hexes(12), _value(chance), True])
        return f"{json.dumps(self._other_key())}: {json.dumps(value)}"

    def whole(self, rows: list[str]) -> str:
        inside = ",\n".join(f"    {row}" for row in rows)
        return f'{{\n  "name": "{self.name}",\n  "settings": {{\n{inside}\n  }}\n}}'


class _Log(_Writer):
    def line(self, key: str, value: int) -> str:
        return f"{self._time()} INFO {self.name} applied {key}={value}"

    def filler(self) -> str:
        chance = self.chance
        said = " ".join(chance.choices(_WORDS, k=4))
        return (
            f"{self._time()} {chance.choice(_LEVELS)} {self.name} {said} "
            f"id={chance.hexes(8)} took={chance.randrange(1, 999)}ms"
        )

    def whole(self, rows: list[str]) -> str:
        return "\n".join(rows)

    def _time(self) -> str:
        at = [self.chance.randrange(below) for below in (28, 24, 60, 60)]
        return f"2026-03-{at[0] + 1:02d}T{at[1]:02d}:{at[2]:02d}:{at[3]:02d}Z"


class _Prose(_Writer):
    def line(self, key: str, value: int) -> str:
        reason = " ".join(self.chance.choices(_WORDS, k=3))
        return f"For {self.name} we agreed on a {key} of {value} because of the {reason}."

    def filler(self) -> str:
        return sentence(self.chance)

    def whole(self, rows: list[str]) -> str:
        paragraphs = [" ".join(rows[at : at + 5]) for at in range(0, len(rows), 5)]
        return "\n\n".join([f"# Notes on {self.name}", *paragraphs])


class _Table(_Writer):
    """A table in one of three styles: CSV, Markdown, or lines drawn in ASCII."""

    def __init__(self, chance: Chance, name: str) -> None:
        super().__init__(chance, name)
        self._style = chance.choice(("csv", "markdown", "ascii"))

    def line(self, key: str, value: int) -> str:
        return self._row(key, str(value))

    def filler(self) -> str:
        return self._row(self._other_key(), str(_value(self.chance)))

    def whole(self, rows: list[str]) -> str:
        head = self._cells(("service", "setting", "value", "owner", "changed"))
        rule = {"csv": [], "markdown": ["|---|---|---|---|---|"], "ascii": [f"+{'-' * 60}+"]}
        return "\n".join([head, *rule[self._style], *rows])

    def _row(self, key: str, value: str) -> str:
        changed = f"2026-{self.chance.randrange(1, 13):02d}-{self.chance.randrange(1, 29):02d}"
        return self._cells((self.name, key, value, self.chance.choice(_WORDS), changed))

    def _cells(self, cells: Sequence[str]) -> str:
        if self._style == "csv":
            return ",".join(cells)
        if self._style == "markdown":
            return f"| {' | '.join(cells)} |"
        return f"| {' | '.join(cell.ljust(12) for cell in cells)} |"


_WRITERS: dict[Content, Callable[[Chance, str], _Writer]] = {
    "yaml": _Yaml, "table": _Table, "prose": _Prose, "json": _Json, "log": _Log,
}  # fmt: skip
