"""A damaged store never opens as less than it was without a word, and never raises what is not ours."""

from __future__ import annotations

import logging
import sqlite3
from pathlib import Path

import pytest

from ctxgc.errors import InputError, StoreDamagedError
from ctxgc.session import Event, Session
from ctxgc.stores import MemoryStore
from tests.session.build import make
from tests.session.damage import FILES, judge, opened, whole_of, work

FEW = range(60)
MANY = [range(first, first + 100) for first in range(0, 2_000, 100)]


@pytest.mark.parametrize("seeds", [FEW, *(pytest.param(r, marks=pytest.mark.large) for r in MANY)])
@pytest.mark.parametrize("kind", FILES)
def test_random_damage_is_noticed_and_what_can_be_saved_is(
    kind: str, seeds: range, tmp_path: Path
) -> None:
    whole = work(kind, tmp_path / "whole")
    found = judge(kind, tmp_path / "whole", whole, seeds)
    assert found.faults == []
    assert found.noticed > len(seeds) / 2
    assert found.saved > len(seeds) / 2


def test_what_is_lost_is_named_by_an_error_and_when_accepted_by_field_event_and_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    whole = work("sqlite", tmp_path / "whole")
    with sqlite3.connect(tmp_path / "whole" / FILES["sqlite"]) as db:
        db.execute("DELETE FROM documents WHERE collection = 'segments' AND key = 's-6'")
        db.execute("UPDATE documents SET doc = replace(doc, 'unit 2', 'unit 3') WHERE key = 's-9'")
    db.close()
    with pytest.raises(StoreDamagedError) as refused:
        opened("sqlite", tmp_path / "whole")
    assert refused.value.details["key"] == "s-9"
    with caplog.at_level(logging.WARNING, "ctxgc"):
        session = opened("sqlite", tmp_path / "whole", damaged="accept")
    assert session.damage == ("s-9 in segments", "2 segments")
    assert "goes on without: s-9 in segments; 2 segments" in caplog.text
    seen: list[Event] = []
    session.events(seen.append)
    assert [(e.kind, e.data) for e in seen] == [("damaged", {"missing": list(session.damage)})]
    rest = whole_of(session).texts
    assert whole.texts.keys() - rest.keys() == {"s-6", "s-9"}
    assert all(whole.texts[name][0] == text for name, (text, _) in rest.items())


def test_what_was_accepted_once_is_not_told_again(tmp_path: Path) -> None:
    work("sqlite", tmp_path / "whole")
    with sqlite3.connect(tmp_path / "whole" / FILES["sqlite"]) as db:
        db.execute("DELETE FROM documents WHERE collection = 'segments' AND key = 's-6'")
    db.close()
    session = opened("sqlite", tmp_path / "whole", damaged="accept")
    session.append({"role": "user", "content": "Go on without it."})
    session.close()
    assert opened("sqlite", tmp_path / "whole").damage == ()


def test_a_session_that_was_in_a_damaged_file_is_not_opened_as_a_new_one(tmp_path: Path) -> None:
    work("json", tmp_path / "whole")
    (tmp_path / "whole" / FILES["json"]).write_bytes(bytes(5_000))
    for _ in range(2):
        with pytest.raises(StoreDamagedError, match="set aside"):
            opened("json", tmp_path / "whole")
    new = Session(2_000, store=f"json:{tmp_path / 'whole' / FILES['json']}")
    assert new.damage == ()


def test_a_session_that_only_the_index_of_sqlite_lost_is_not_opened_as_a_new_one(
    tmp_path: Path,
) -> None:
    whole = work("sqlite", tmp_path / "whole")
    file = tmp_path / "whole" / FILES["sqlite"]
    with sqlite3.connect(file) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (page,) = db.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_sessions_1'"
        ).fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
    db.close()
    data = bytearray(file.read_bytes())
    at = data.index(b"worked", (page - 1) * size, page * size)
    data[at : at + 6] = b"walked"
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / FILES["sqlite"]).write_bytes(data)
    assert "the index of the sessions" in _refusal(tmp_path / "damaged")
    assert whole_of(opened("sqlite", tmp_path / "damaged")) == whole  # salvaged from the table


def _refusal(folder: Path) -> str:
    """Return why a session is refused; a kept exception would keep its store open."""
    try:
        opened("sqlite", folder)
    except StoreDamagedError as error:
        return error.message
    return ""


def test_documents_of_older_versions_have_no_digest_and_open(tmp_path: Path) -> None:
    whole = work("sqlite", tmp_path / "whole")
    with sqlite3.connect(tmp_path / "whole" / FILES["sqlite"]) as db:
        db.execute("UPDATE documents SET doc = json_remove(doc, '$.~crc')")
        db.execute("DELETE FROM documents WHERE key = 'census'")
        db.execute("PRAGMA user_version = 1")
    db.close()
    assert whole_of(opened("sqlite", tmp_path / "whole")) == whole


def test_damaged_must_be_refuse_or_accept() -> None:
    with pytest.raises(InputError, match="damaged"):
        make(store=MemoryStore(), damaged="perhaps")
