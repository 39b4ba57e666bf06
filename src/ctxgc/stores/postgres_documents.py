"""The rows of a Postgres store: sessions, documents and search entries.

Everything runs inside a transaction of the caller; a batch takes a handful of statements.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ctxgc.core import utc_now
from ctxgc.errors import StoreError
from ctxgc.stores.base import CollectionName, Prepared, check_revision, escape, unescape
from ctxgc.stores.search import CANDIDATES, COMMON, Candidate, Query, SearchEntry, index_entry

if TYPE_CHECKING:
    from psycopg import Connection

_Name = tuple[CollectionName, str]
_Growth = tuple[int, int]

# Repeated for each group of marks: an empty array would match everything, but read the whole index.
_MARKED = "AND e.marks && %s "


def write(
    db: Connection[Any], session_id: str, writes: Sequence[Prepared], expect: int | None
) -> int:
    """Write a batch and return the session's new revision.

    The row of the session stays locked until the transaction ends, so no other commit can intervene.
    """
    sid, revision = _one(
        db,
        """INSERT INTO ctxgc.sessions AS s (session_id, revision, created_at, updated_at)
           VALUES (%(name)s, 1, %(now)s, %(now)s) ON CONFLICT (session_id)
           DO UPDATE SET revision = s.revision + 1, updated_at = excluded.updated_at
           RETURNING sid, revision""",
        {"name": escape(session_id), "now": utc_now()},
    )
    check_revision(session_id, expect, revision - 1)
    drops, puts = _collapse(writes)
    fewer, more = _drop(db, sid, drops), _put(db, sid, puts)
    db.execute(
        "UPDATE ctxgc.sessions SET segments = segments + %s, words = words + %s WHERE sid = %s",
        (more[0] - fewer[0], more[1] - fewer[1], sid),
    )
    return int(revision)


def _collapse(writes: Iterable[Prepared]) -> tuple[list[_Name], list[Prepared]]:
    """Return the names to drop first and the documents to put then, each once, with the same effect.

    A document that is dropped and put again is in both: it moves to the end of its collection.
    """
    drops: dict[_Name, None] = {}
    puts: dict[_Name, Prepared] = {}
    for write in writes:
        name = (write.collection, write.key)
        if write.text is None:
            drops[name] = None
            puts.pop(name, None)
        else:
            puts[name] = write
    return list(drops), list(puts.values())


def _drop(db: Connection[Any], sid: int, names: list[_Name]) -> _Growth:
    if not names:
        return 0, 0
    segments, words = _one(
        db,
        """WITH gone AS (
               DELETE FROM ctxgc.documents d USING unnest(%s::text[], %s::text[]) AS n (c, k)
               WHERE d.sid = %s AND d.collection = n.c AND d.key = n.k RETURNING d.seq)
           SELECT count(*), coalesce(sum(length), 0) FROM ctxgc.entries JOIN gone USING (seq)""",
        ([c for c, _ in names], [escape(k) for _, k in names], sid),
    )
    return int(segments), int(words)


def _put(db: Connection[Any], sid: int, puts: list[Prepared]) -> _Growth:
    if not puts:
        return 0, 0
    rows = db.execute(
        """INSERT INTO ctxgc.documents (sid, collection, key, doc)
           SELECT %s, c, k, d
           FROM unnest(%s::text[], %s::text[], %s::text[]) WITH ORDINALITY AS n (c, k, d, place)
           ORDER BY place
           ON CONFLICT (sid, collection, key) DO UPDATE SET doc = excluded.doc
           RETURNING collection, key, seq""",
        (
            sid,
            [put.collection for put in puts],
            [escape(put.key) for put in puts],
            [put.text for put in puts],
        ),
    ).fetchall()
    numbers = {(collection, key): seq for collection, key, seq in rows}
    segments = [
        (numbers["segments", escape(put.key)], put) for put in puts if put.collection == "segments"
    ]
    return _index(db, sid, segments) if segments else (0, 0)


def _index(db: Connection[Any], sid: int, segments: list[tuple[int, Prepared]]) -> _Growth:
    """Update the search entries of segments; words that did not change are left alone."""
    olds = _entries(db, [seq for seq, _ in segments])
    changed, marked, count, length = [], [], 0, 0
    for seq, put in segments:
        old = olds.get(seq)
        new = index_entry(put.doc or {}, old)
        marks = [_session_mark(sid), *sorted(new.marks)]
        if old is not None and old.digest == new.digest:
            marked.append((marks, new.created, seq))
            continue
        count, length = count + (old is None), length + new.length - (old.length if old else 0)
        terms = sorted(set(new.words.split()))
        name = escape(put.key)
        changed.append(
            (seq, sid, name, new.length, new.created, new.digest, marks, terms, new.words)
        )
    _write_entries(db, changed, marked)
    return count, length


def _write_entries(
    db: Connection[Any], changed: list[tuple[Any, ...]], marked: list[tuple[Any, ...]]
) -> None:
    with db.cursor() as cursor:
        cursor.executemany(
            """INSERT INTO ctxgc.entries VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)
               ON CONFLICT (seq) DO UPDATE SET length = excluded.length, created = excluded.created,
               digest = excluded.digest, marks = excluded.marks, terms = excluded.terms,
               words = excluded.words""",
            changed,
        )
        cursor.executemany(
            "UPDATE ctxgc.entries SET marks = %s, created = %s WHERE seq = %s", marked
        )


def _entries(db: Connection[Any], numbers: list[int]) -> dict[int, SearchEntry]:
    """Return the old entries without their words, which are only compared by digest."""
    rows = db.execute(
        "SELECT seq, length, digest FROM ctxgc.entries WHERE seq = ANY (%s)", (numbers,)
    )
    return {seq: SearchEntry("", length, frozenset(), None, digest) for seq, length, digest in rows}


def _session_mark(sid: int) -> str:
    """Return the mark of all segments of a session."""
    return f"=s{sid}"


class PostgresSource:
    """Answers the questions of `search.rank` about one session, or about all."""

    def __init__(self, db: Connection[Any], sid: int | None) -> None:
        self._db = db
        self._sid = sid
        self._groups = [] if sid is None else [[_session_mark(sid)]]

    def size(self) -> tuple[int, int]:
        """Return how many segments there are, and how many words they have together."""
        segments, words = _one(
            self._db,
            """SELECT coalesce(sum(segments), 0), coalesce(sum(words), 0) FROM ctxgc.sessions
               WHERE %(sid)s::bigint IS NULL OR sid = %(sid)s""",
            {"sid": self._sid},
        )
        return int(segments), int(words)

    def count(self, word: str) -> int:
        """Return how many segments have a word, at most `COMMON`."""
        (count,) = _one(
            self._db,
            f"""SELECT count(*) FROM (SELECT FROM ctxgc.entries e
                WHERE e.terms @> %s {_MARKED * len(self._groups)} LIMIT %s) AS found""".encode(),  # noqa: S608 (the text is fixed but for its length)
            ([word], *self._groups, COMMON),
        )
        return int(count)

    def newest(self, asked: Query) -> list[Candidate]:
        """Return the newest candidates that have all words and pass the filters."""
        groups = [*self._groups, *map(list, asked.marks)]
        rows = self._db.execute(
            f"""SELECT s.session_id, e.key, e.length, e.words
                FROM ctxgc.entries e JOIN ctxgc.sessions s USING (sid)
                WHERE e.terms @> %s {_MARKED * len(groups)}
                AND (%s::bigint IS NULL OR e.created >= %s)
                AND (%s::bigint IS NULL OR e.created <= %s)
                ORDER BY e.seq DESC LIMIT %s""".encode(),  # noqa: S608 (the text is fixed but for its length)
            (
                list(asked.words),
                *groups,
                asked.after,
                asked.after,
                asked.before,
                asked.before,
                CANDIDATES,
            ),
        )
        return [Candidate(unescape(s), unescape(k), length, words) for s, k, length, words in rows]


def _one(db: Connection[Any], sql: Any, values: Any) -> tuple[Any, ...]:
    row: tuple[Any, ...] | None = db.execute(sql, values).fetchone()
    if row is None:
        raise StoreError("the database returned no row where there must be one")
    return row
