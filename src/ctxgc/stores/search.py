"""Ranked search: one way to ask, one formula, one order of results for every store.

A store only has to answer three questions (`Source`): how large is what is searched, how many
segments have a word, and which are the newest that have these words. What comes out is the same
wherever the segments lie, because nothing else goes into the score.

The work is bounded: at most `CANDIDATES` segments of a word are scored (of more, the newest), and a
word is not counted beyond `COMMON` segments. A word that few segments have is asked for alone: that
costs less than asking for all words at once, and tells as much.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from heapq import nsmallest
from typing import Any, Protocol, TypeGuard

import msgspec

from ctxgc.errors import InputError
from ctxgc.stores.base import SearchFilters
from ctxgc.stores.scoring import Candidate, Scale, Scored, best
from ctxgc.stores.words import spaced, words

CANDIDATES = 1_000
COMMON = 10_000
FEW = 250
MOST_QUERY_WORDS = 64

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SEARCHED = ("text", "name", "file_path", "topic_id")
_MARKED = ("file_path", "task_id", "type", "tier")


class Entry(msgspec.Struct, frozen=True, gc=False):
    """What search knows of a segment: its words, how many, its marks, and when it was made.

    In `words` each word has a blank on both sides, so that counting one is counting substrings.
    """

    words: str
    length: int
    marks: frozenset[str]
    created: int | None
    digest: bytes


class Query(msgspec.Struct, frozen=True):
    """What is asked for: words, and per filter the marks of which one is needed."""

    words: tuple[str, ...]
    marks: tuple[tuple[str, ...], ...] = ()
    after: int | None = None
    before: int | None = None


class Source(Protocol):
    """What a store answers about the segments that are searched: those of one session, or all."""

    def size(self) -> tuple[int, int]:
        """Return how many segments there are, and how many words they have together."""
        ...

    def count(self, word: str) -> int:
        """Return how many segments have a word, at most `COMMON`."""
        ...

    def newest(self, query: Query) -> list[Candidate]:
        """Return the newest `CANDIDATES` that have all words and one mark of each group."""
        ...


def entry(doc: Mapping[str, Any], old: Entry | None = None) -> Entry:
    """Return what search has to know of a segment document.

    The words of an old entry are taken over if the document still says the same.
    """
    tags = _tags(doc)
    texts = [text for text in (*(doc.get(field) for field in _SEARCHED), *tags) if _is_text(text)]
    digest = _digest(texts)
    if old is not None and old.digest == digest:
        padded, length = old.words, old.length
    else:
        padded = "".join(map(spaced, texts))
        length = padded.count(" ") // 2
    marks = [mark(field, _shown(doc.get(field))) for field in _MARKED]
    marks += [mark("tag", tag) for tag in tags]
    return Entry(padded, length, frozenset(marks), _created(doc.get("created_at")), digest)


def query(text: str, filters: SearchFilters | None = None) -> Query:
    """Return the words and filters of a question as a store needs them.

    Raises:
        InputError: the question is no text, or a time of the filters has no zone.
    """
    if not isinstance(text, str):
        raise InputError(f"a query is a text, not {type(text).__name__}", field="query")
    asked = tuple(dict.fromkeys(words(text)))[:MOST_QUERY_WORDS]
    filters = filters or SearchFilters()
    wanted = {name: getattr(filters, name) for name in _MARKED}
    marks = [(mark(name, value),) for name, value in wanted.items() if value is not None]
    tags = tuple(mark("tag", tag) for tag in filters.tags)
    after, before = (
        _moment(name, getattr(filters, name)) for name in ("created_after", "created_before")
    )
    return Query(asked, (*marks, tags) if tags else tuple(marks), after, before)


def find(source: Source, asked: Query, limit: int) -> list[Scored]:
    """Return score, session id and key of the best segments, best first.

    Raises:
        InputError: the limit is not a positive number.
    """
    if limit < 1:
        raise InputError(f"limit cannot be {limit!r}", hint="give 1 or more", field="limit")
    if not asked.words:
        return []
    counts = {word: source.count(word) for word in asked.words}
    known = sorted((count, word) for word, count in counts.items() if count)
    if not known:
        return []
    scale = Scale.of(known, source.size())
    complete = len(known) == len(counts)
    if known[0][0] > FEW:
        found = source.newest(asked) if complete else []
        return best(map(scale.score, found), limit) or _any(source, asked, scale, limit)
    near = _having(source, asked, known[0][1])
    found = [one for one in near if all(word in one.words for word, _ in scale.weights)]
    if complete and found:
        return best(map(scale.score, found), limit)
    return _any(source, asked, scale, limit, near)


def matches(asked: Query, candidate: Entry) -> bool:
    """Tell whether a segment passes the filters; its words are not looked at."""
    if not all(not candidate.marks.isdisjoint(group) for group in asked.marks):
        return False
    if asked.after is None and asked.before is None:
        return True
    made = candidate.created
    return (
        made is not None
        and (asked.after is None or made >= asked.after)
        and (asked.before is None or made <= asked.before)
    )


@lru_cache(maxsize=1 << 14)
def mark(kind: str, value: str | None) -> str:
    """Return the index term for a property of a segment; no word of a text is like it."""
    name = f"{kind}\0{value}".encode("utf-8", "surrogatepass")
    return "=" + hashlib.blake2b(name, digest_size=8).hexdigest()


def _any(
    source: Source, asked: Query, scale: Scale, limit: int, near: list[Candidate] | None = None
) -> list[Scored]:
    """Return the best segments with one of the words: those with the rarest first, `near` if known.

    A word adds less than its weight to a score, so it ends when the words that are left cannot
    lift a segment that has only them above those that were found.
    """
    found: dict[tuple[str, str], Scored] = {}
    left = sum(weight for _, weight in scale.weights)
    for place, (word, weight) in enumerate(scale.weights):
        if len(found) >= CANDIDATES or _are_above(left, found.values(), limit):
            break
        known = near if place == 0 else None
        some = _having(source, asked, word.strip()) if known is None else known
        found.update((one[:2], scale.score(one)) for one in some if one[:2] not in found)
        left -= weight
    return best(found.values(), limit)


def _are_above(score: float, found: Iterable[Scored], limit: int) -> bool:
    """Tell whether there are enough segments that no lower score comes in between."""
    first = nsmallest(limit, found)
    return len(first) == limit and -first[-1][0] >= score


def _having(source: Source, asked: Query, word: str) -> list[Candidate]:
    return source.newest(msgspec.structs.replace(asked, words=(word,)))


def _shown(value: object) -> str | None:
    return None if value is None else str(value)


def _is_text(value: object) -> TypeGuard[str]:
    return isinstance(value, str)


def _digest(texts: Iterable[str]) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for text in texts:
        digest.update(text.encode("utf-8", "surrogatepass") + b"\xff")
    return digest.digest()


def _tags(doc: Mapping[str, Any]) -> list[str]:
    tags = doc.get("tags")
    return [str(tag) for tag in tags] if isinstance(tags, (list, tuple)) else []


def _created(value: object) -> int | None:
    try:
        made = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    if made is None:
        return None
    return _microseconds(made if made.tzinfo else made.replace(tzinfo=UTC))


def _moment(field: str, value: datetime | None) -> int | None:
    if value is None:
        return None
    if value.tzinfo is None:
        raise InputError(
            f"{field} cannot be {value!r}", hint="give a datetime with a time zone", field=field
        )
    return _microseconds(value)


def _microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)
