"""Documents of a database that someone or something changed or deleted are noticed."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import psycopg
import pytest

from ctxgc.errors import CtxgcError
from ctxgc.session import Session
from tests.fakes import Clock, WordCounter
from tests.session.build import make
from tests.session.damage import whole_of

FEW = 60
MANY = 2_000


def opened(url: str) -> Session:
    return Session(
        2_000, store=url, session_id="rows", plugin="gc_truncate", counter=WordCounter(),
        clock=Clock(),
    )  # fmt: skip


def damaged(doc: str, other: str, rng: Random) -> str | None:
    """Return a document after something random happened to it; None if it is gone."""
    place = rng.randrange(len(doc))
    how = rng.choice(("flip", "cut", "blank", "insert", "duplicate", "other", "gone"))
    return {
        "flip": doc[:place] + chr(ord(doc[place]) ^ 1) + doc[place + 1 :],
        "cut": doc[:place],
        "blank": doc[:place] + " " * len(doc[place : place + 16]) + doc[place + 16 :],
        "insert": doc[:place] + "x" * rng.choice((1, 16)) + doc[place:],
        "duplicate": doc[: place + 16] + doc[place:],
        "other": other,
        "gone": None,
    }[how]


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.large)])
def test_random_damage_to_rows_is_noticed(empty_database: Callable[[], str], count: int) -> None:
    url = empty_database()
    session = make(2_000, store=url, session_id="rows", preserve_recent_turns=1)
    for number in range(8):
        said = " ".join(f"step {number}.{n} done" for n in range(40))
        session.append({"role": "user", "content": f"Go on with {number}."})
        session.append({"role": "assistant", "content": said})
        session.messages()
    session.checkpoint("now")
    session.collect(500)
    session.close()
    whole = whole_of(opened(url))
    noticed = 0
    with psycopg.connect(url, autocommit=True) as db:
        rows = db.execute("SELECT * FROM ctxgc.documents ORDER BY seq").fetchall()
        for seed in range(count):
            rng = Random(f"rows-{seed}")
            row, other = rng.choice(rows), rng.choice(rows)
            doc = damaged(row[-1], other[-1], rng)
            if doc is None:
                db.execute("DELETE FROM ctxgc.documents WHERE seq = %s", (row[0],))
            else:
                db.execute("UPDATE ctxgc.documents SET doc = %s WHERE seq = %s", (doc, row[0]))
            try:
                seen = whole_of(opened(url))
            except CtxgcError:
                noticed += 1
            else:
                assert seen == whole, (seed, row[:-1])
            marks = ", ".join(["%s"] * len(row))
            db.execute("DELETE FROM ctxgc.documents WHERE seq = %s", (row[0],))
            db.execute(f"INSERT INTO ctxgc.documents VALUES ({marks})".encode(), row)
    assert noticed > count / 2
