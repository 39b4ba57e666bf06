"""Ranked search (BM25): the same query, formula and order of results in every store.

A store only answers three questions (`SearchSource`): how many segments and words are searched, how many
segments have a word, and which are the newest with these words. Nothing else enters the score, so every
store that holds the same segments gives the same results.

The work is bounded: at most `CANDIDATES` segments of a word are scored (the newest of more), and a word is
not counted beyond `COMMON` segments. A rare word is looked up alone: that costs less than looking up all
words together, and finds the same.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from heapq import nsmallest
from math import log
from typing import Any, NamedTuple, Protocol, TypeGuard

import msgspec

from ctxgc.errors import InputError
from ctxgc.stores.base import SearchFilters

CANDIDATES = 1_000
COMMON = 10_000
FEW = 250
MOST_QUERY_WORDS = 64

K1 = 1.2
B = 0.75

Scored = tuple[float, str, str]

LONGEST_WORD = 64
MOST_KNOWN = 1 << 16

_RUN = re.compile(r"\w+")
_RUNS_ONLY = "".join(char if _RUN.match(char) else " " for char in map(chr, range(128)))
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_BLANKLESS = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SEARCHED = ("text", "name", "file_path", "topic_id")
_MARKED = ("file_path", "task_id", "type", "tier")


class SearchEntry(msgspec.Struct, frozen=True, gc=False):
    """What search knows about a segment: its words, their number, its marks, and its creation time.

    In `words` each word has a blank on both sides, so that counting a word is counting substrings.
    """

    words: str
    length: int
    marks: frozenset[str]
    created: int | None
    digest: bytes


class Query(msgspec.Struct, frozen=True):
    """A query: its words, and for each filter the marks of which a segment needs one."""

    words: tuple[str, ...]
    marks: tuple[tuple[str, ...], ...] = ()
    after: int | None = None
    before: int | None = None


class SearchSource(Protocol):
    """What a store answers about the segments that are searched: of one session, or of all."""

    def size(self) -> tuple[int, int]:
        """Return how many segments there are, and how many words they have together."""
        ...

    def count(self, word: str) -> int:
        """Return how many segments have a word, at most `COMMON`."""
        ...

    def newest(self, asked: Query) -> list[Candidate]:
        """Return the newest `CANDIDATES` that have all words and one mark of each group."""
        ...


def index_entry(doc: Mapping[str, Any], old: SearchEntry | None = None) -> SearchEntry:
    """Return what search needs to know about a segment document.

    The words of the old entry are reused if the searched texts did not change.
    """
    tags = _tags(doc)
    texts = [text for text in (*(doc.get(field) for field in _SEARCHED), *tags) if _is_text(text)]
    digest = _digest(texts)
    if old is not None and old.digest == digest:
        padded, length = old.words, old.length
    else:
        padded = "".join(map(padded_words, texts))
        length = padded.count(" ") // 2
    marks = [filter_term(field, _shown(doc.get(field))) for field in _MARKED]
    marks += [filter_term("tag", tag) for tag in tags]
    return SearchEntry(padded, length, frozenset(marks), _created(doc.get("created_at")), digest)


def parse_query(text: str, filters: SearchFilters | None = None) -> Query:
    """Return a query with its filters as a store needs them.

    Raises:
        InputError: the query is not a text, or a time of the filters has no zone.
    """
    if not isinstance(text, str):
        raise InputError(f"query must be a string, got {type(text).__name__}", field="query")
    asked = tuple(dict.fromkeys(search_words(text)))[:MOST_QUERY_WORDS]
    filters = filters or SearchFilters()
    wanted = {name: getattr(filters, name) for name in _MARKED}
    marks = [(filter_term(name, value),) for name, value in wanted.items() if value is not None]
    tags = tuple(filter_term("tag", tag) for tag in filters.tags)
    after, before = (
        _moment(name, getattr(filters, name)) for name in ("created_after", "created_before")
    )
    return Query(asked, (*marks, tags) if tags else tuple(marks), after, before)


def rank(source: SearchSource, asked: Query, limit: int) -> list[Scored]:
    """Return score, session id and key of the best segments, best first.

    Raises:
        InputError: the limit is not positive.
    """
    if limit < 1:
        raise InputError(
            f"limit must be at least 1, got {limit!r}", hint="pass 1 or more", field="limit"
        )
    if not asked.words:
        return []
    counts = {word: source.count(word) for word in asked.words}
    known = sorted((count, word) for word, count in counts.items() if count)
    if not known:
        return []
    scale = Bm25Scale.of(known, source.size())
    complete = len(known) == len(counts)
    if known[0][0] > FEW:
        found = source.newest(asked) if complete else []
        return best_scored(map(scale.score, found), limit) or _any(source, asked, scale, limit)
    near = _having(source, asked, known[0][1])
    found = [one for one in near if all(word in one.words for word, _ in scale.weights)]
    if complete and found:
        return best_scored(map(scale.score, found), limit)
    return _any(source, asked, scale, limit, near)


def passes_filters(asked: Query, candidate: SearchEntry) -> bool:
    """Return whether a segment passes the filters, whatever its words."""
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
def filter_term(kind: str, value: str | None) -> str:
    """Return the index term for a property of a segment; no word of a text can equal it."""
    name = f"{kind}\0{value}".encode("utf-8", "surrogatepass")
    return "=" + hashlib.blake2b(name, digest_size=8).hexdigest()


def _any(
    source: SearchSource,
    asked: Query,
    scale: Bm25Scale,
    limit: int,
    near: list[Candidate] | None = None,
) -> list[Scored]:
    """Return the best segments with any of the words; `near` are those with the rarest, if known.

    A word adds less than its weight to a score, so the search ends when a segment with only the remaining
    words cannot rank above those already found.
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
    return best_scored(found.values(), limit)


def _are_above(score: float, found: Iterable[Scored], limit: int) -> bool:
    """Return whether the best `limit` segments all score at least this much."""
    first = nsmallest(limit, found)
    return len(first) == limit and -first[-1][0] >= score


def _having(source: SearchSource, asked: Query, word: str) -> list[Candidate]:
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
            f"{field} must have a time zone, got {value!r}",
            hint="pass a datetime with a time zone",
            field=field,
        )
    return _microseconds(value)


def _microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


# -- BM25


class Candidate(NamedTuple):
    """A segment to be scored."""

    session_id: str
    key: str
    length: int
    words: str


class Bm25Scale(NamedTuple):
    """What BM25 needs besides a segment: padded words with their weights, and the length norm."""

    weights: list[tuple[str, float]]
    flat: float
    slope: float

    @classmethod
    def of(cls, known: Sequence[tuple[int, str]], size: tuple[int, int]) -> Bm25Scale:
        """Return the scale for words with their counts, rarest first."""
        segments, total = size
        average = max(total, 1) / max(segments, 1)
        weights = [
            (f" {word} ", (K1 + 1) * log(1 + (segments - count + 0.5) / (count + 0.5)))
            for count, word in known
        ]
        return cls(weights, K1 * (1 - B), K1 * B / average)

    def score(self, candidate: Candidate) -> Scored:
        """Return the negated score, so that the best sorts first, with session id and key."""
        session_id, key, length, text = candidate
        score, norm = 0.0, self.flat + self.slope * length
        for word, weight in self.weights:
            times = text.count(word)
            if times:
                score -= weight * times / (times + norm)
        return score, session_id, key


def best_scored(scored: Iterable[Scored], limit: int) -> list[Scored]:
    """Return the best with their true scores; equal ones are ordered by session id and key."""
    return [(-score, session_id, key) for score, session_id, key in nsmallest(limit, scored)]


# -- Words


def search_words(text: str) -> list[str]:
    """Return the words of a text in order, repetitions included."""
    return padded_words(text).split()


def padded_words(text: str) -> str:
    """Return the words of a text in order as one text, each with a blank on both sides."""
    if text.isascii():
        runs = text.translate(_RUNS_ONLY).split()
    else:
        runs = _RUN.findall(unicodedata.normalize("NFKC", text))
    found = "".join(map(_known.__getitem__, runs))
    if len(_known) > MOST_KNOWN:
        _known.clear()
    return found


class _Known(dict[str, str]):
    """Words by the runs they come from; a hit costs no Python call."""

    def __missing__(self, run: str) -> str:
        found = self[run] = "".join(f" {word} " for word in _words(run[:256]))
        return found


_known = _Known()


def _words(run: str) -> list[str]:
    pieces = [piece for piece in run.split("_") if piece]
    found = [word for piece in pieces for word in _humps(piece)]
    if len(pieces) > 1:
        found.append("".join(pieces).casefold())
    return [word[:LONGEST_WORD] for word in found]


def _humps(piece: str) -> list[str]:
    humps = _HUMP.split(piece)
    if len(humps) == 1:
        return _pairs(piece.casefold())
    return [word for hump in humps for word in _pairs(hump.casefold())] + [piece.casefold()]


def _pairs(part: str) -> list[str]:
    if part.isascii() or not _BLANKLESS.search(part):
        return [part]
    return list(part) + [part[i : i + 2] for i in range(len(part) - 1)]
