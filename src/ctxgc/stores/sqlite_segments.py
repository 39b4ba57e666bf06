"""The search side of a sqlite store: FTS5 finds the candidates, `search` scores them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any

from ctxgc.stores.documents import unescape
from ctxgc.stores.scoring import Candidate
from ctxgc.stores.search import CANDIDATES, COMMON, Entry, Query, entry

Growth = tuple[int, int]


def index_segment(
    db: sqlite3.Connection, sid: int, seq: int, key: str, doc: dict[str, Any]
) -> Growth:
    """Index a segment, new or changed; return how many segments and words that adds."""
    old = _entry(db, seq)
    new = entry(doc, old)
    if old == new:
        return 0, 0
    if old is None or old.digest != new.digest or old.marks != new.marks:
        if old is not None:
            _forget_terms(db, sid, seq, old)
        db.execute("INSERT INTO search (rowid, terms) VALUES (?, ?)", (seq, _terms(sid, new)))
    values = (seq, sid, key, new.length, new.created, new.digest, _joined(new.marks), new.words)
    db.execute("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
    return (0, new.length - old.length) if old else (1, new.length)


def forget_segment(db: sqlite3.Connection, sid: int, seq: int) -> Growth:
    """Take a segment out of the index; return how many segments and words that adds."""
    old = _entry(db, seq)
    if old is None:
        return 0, 0
    _forget_terms(db, sid, seq, old)
    db.execute("DELETE FROM entries WHERE seq = ?", (seq,))
    return -1, -old.length


class SqliteSource:
    """Answers the questions of `search.find` about one session, or about all."""

    def __init__(self, db: sqlite3.Connection, sid: int | None) -> None:
        self._db = db
        self._sid = sid
        self._names: dict[int, str] = {}

    def size(self) -> tuple[int, int]:
        """Return how many segments there are, and how many words they have together."""
        where, values = ("", ()) if self._sid is None else ("WHERE sid = ?", (self._sid,))
        sums = f"SELECT total(segments), total(words) FROM sessions {where}"  # noqa: S608
        segments, length = self._db.execute(sums, values).fetchone()
        return int(segments), int(length)

    def count(self, word: str) -> int:
        """Return how many segments have a word, at most `COMMON`."""
        found = self._db.execute(
            "SELECT count(*) FROM (SELECT 1 FROM search WHERE search MATCH ? LIMIT ?)",
            (self._match((word,), ()), COMMON),
        )
        return int(found.fetchone()[0])

    def newest(self, asked: Query) -> list[Candidate]:
        """Return the newest candidates that have all words and pass the filters."""
        rows = self._db.execute(
            """SELECT e.sid, e.key, e.length, e.words
               FROM search JOIN entries e ON e.seq = search.rowid
               WHERE search MATCH ?1 AND (?2 IS NULL OR e.created >= ?2)
                                    AND (?3 IS NULL OR e.created <= ?3)
               ORDER BY search.rowid DESC LIMIT ?4""",
            (self._match(asked.words, asked.marks), asked.after, asked.before, CANDIDATES),
        )
        return [
            Candidate(self._session(sid), unescape(key), length, words)
            for sid, key, length, words in rows
        ]

    def _session(self, sid: int) -> str:
        name = self._names.get(sid)
        if name is None:
            found = self._db.execute("SELECT session_id FROM sessions WHERE sid = ?", (sid,))
            name = self._names[sid] = unescape(found.fetchone()[0])
        return name

    def _match(self, words: Iterable[str], marks: Iterable[tuple[str, ...]]) -> str:
        """Return a question in FTS5's language; every term is quoted, so that none is an operator."""
        groups = [(word,) for word in words] + list(marks)
        if self._sid is not None:
            groups.insert(0, (_session_mark(self._sid),))
        return " AND ".join("(" + " OR ".join(f'"{t}"' for t in group) + ")" for group in groups)


def _entry(db: sqlite3.Connection, seq: int) -> Entry | None:
    row = db.execute(
        "SELECT words, length, marks, created, digest FROM entries WHERE seq = ?", (seq,)
    ).fetchone()
    if row is None:
        return None
    words, length, marks, created, digest = row
    return Entry(words, length, frozenset(marks.split()), created, digest)


def _forget_terms(db: sqlite3.Connection, sid: int, seq: int, old: Entry) -> None:
    values = (seq, _terms(sid, old))
    db.execute("INSERT INTO search (search, rowid, terms) VALUES ('delete', ?, ?)", values)


def _terms(sid: int, said: Entry) -> str:
    return " ".join([_session_mark(sid), *sorted(said.marks), *sorted(set(said.words.split()))])


def _session_mark(sid: int) -> str:
    return f"=s{sid}"


def _joined(marks: frozenset[str]) -> str:
    return " ".join(sorted(marks))
