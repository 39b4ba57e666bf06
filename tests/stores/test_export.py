"""Exports: what goes out comes in again, and what was changed on the way is noticed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.errors import InputError, StoreDamagedError, StoreError, StoreVersionError
from ctxgc.stores import (
    COLLECTIONS,
    ExportEntry,
    MemoryStore,
    Put,
    Store,
    chosen_sessions,
    export_entries,
    export_json,
    export_lines,
    import_entries,
    read_export,
    session_digest,
    write_export,
)
from ctxgc.stores.export import ExportFile
from ctxgc.stores.json_store import JsonStore
from tests.stores.places import NAMES, fill, segment

NOW = datetime(2026, 5, 1, tzinfo=UTC)
PATH = Path("export")
KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2


def lines(store: Store, *, mask: bool = False) -> bytes:
    return b"".join(export_lines(export_entries(store, mask=mask), masked=mask))


def test_both_forms_hold_every_document_of_every_store(store: Store) -> None:
    fill(store)
    entries = tuple(export_entries(store, mask=False))
    assert len(entries) == 2 * 3 * len(COLLECTIONS)
    assert read_export(PATH, lines(store), NOW) == ExportFile(entries)
    assert sorted(read_export(PATH, export_json(entries, NOW), NOW).entries, key=str) == sorted(
        entries, key=str
    )


def test_an_export_gives_every_store_the_same_documents_in_the_same_order(store: Store) -> None:
    source = MemoryStore()
    fill(source)
    import_entries(store, read_export(PATH, lines(source), NOW).entries)
    assert [session_digest(store, name) for name in NAMES] == [
        session_digest(source, name) for name in NAMES
    ]
    assert lines(store) == lines(source)


def test_the_json_form_is_the_file_of_a_json_store(tmp_path: Path) -> None:
    source, path = MemoryStore(), tmp_path / "carried.json"
    fill(source)
    write_export(path, [export_json(export_entries(source, mask=False), NOW)])
    assert list(json.loads(path.read_bytes()))[2:4] == ["segments", "sessions"]
    store = JsonStore(path)
    assert store.reports == ()
    assert session_digest(store, "a") == session_digest(source, "a")


def test_a_digest_sees_values_keys_collections_and_order() -> None:
    def digest(*puts: Put) -> str:
        store = MemoryStore()
        store.commit("a", puts)
        return session_digest(store, "a")

    one, two = Put("events", "k", {"x": 1}), Put("events", "l", {"x": 1})
    digests = [
        digest(one),
        digest(Put("events", "k", {"x": 1.0})),
        digest(two),
        digest(Put("state", "k", {"x": 1})),
        digest(one, two),
        digest(two, one),
    ]
    assert len(set(digests)) == len(digests)
    assert digest(one) == digests[0]


TEXT = st.text(st.characters(exclude_categories=()), min_size=1, max_size=8)
VALUE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
ENTRY = st.builds(
    ExportEntry, TEXT, st.sampled_from(COLLECTIONS), TEXT, st.dictionaries(TEXT, VALUE, max_size=3)
)


@given(st.lists(ENTRY, max_size=4), st.booleans())
def test_any_documents_come_back_as_they_were(entries: list[ExportEntry], masked: bool) -> None:
    data = b"".join(export_lines(entries, masked=masked))
    found = read_export(PATH, data, NOW)
    assert found == ExportFile(tuple(entries), masked)
    assert b"".join(export_lines(found.entries, masked=masked)) == data


@given(st.data())
def test_every_cut_and_every_changed_bit_is_noticed(data: st.DataObject) -> None:
    store = MemoryStore()
    fill(store, ("a",))
    whole = lines(store)
    place = data.draw(st.integers(0, len(whole) - 1))
    changed = bytearray(whole)
    changed[place] ^= 1 << data.draw(st.integers(0, 7))
    for broken in (whole[:place], bytes(changed)):
        with pytest.raises((StoreDamagedError, StoreVersionError, InputError)):
            read_export(PATH, broken, NOW)


def test_a_cut_file_says_how_far_it_goes() -> None:
    store = MemoryStore()
    fill(store, ("a",))
    first_four = b"".join(lines(store).splitlines(keepends=True)[:5])
    with pytest.raises(StoreDamagedError, match="ends after 3 documents, without its last line"):
        read_export(PATH, first_four, NOW)
    with pytest.raises(StoreDamagedError, match="ends within its first line"):
        read_export(PATH, first_four[:20], NOW)


def test_a_newer_version_is_refused_politely() -> None:
    newer = b'{"ctxgc_export":2,"all":"different"}\nwhatever'
    with pytest.raises(StoreVersionError, match="version 2, this ctxgc reads 1") as caught:
        read_export(PATH, newer, NOW)
    assert caught.value.details == {"found": 2, "known": 1}
    with pytest.raises(StoreVersionError, match="version 9"):
        read_export(PATH, b'{"version": 9, "segments": []}', NOW)


def test_a_line_that_is_no_document_is_refused() -> None:
    odd = ExportEntry("a", "nowhere", "k", {})  # type: ignore[arg-type]
    with pytest.raises(StoreDamagedError, match="a line is not a document"):
        read_export(PATH, b"".join(export_lines([odd], masked=False)), NOW)


def test_plain_s0_files_are_read_and_others_are_not() -> None:
    plain = b'{"segments": [{"text": "one", "type": "note", "segment_id": "n1"}]}'
    assert read_export(PATH, plain, NOW).entries == (
        ExportEntry(
            "default", "segments", "n1", {"text": "one", "type": "note", "segment_id": "n1"}
        ),
    )
    with pytest.raises(InputError, match="no segments"):
        read_export(PATH, b'{"name": "package"}', NOW)
    for other in (b"", b"\x00\xff", b"[1]", plain[:-4]):
        with pytest.raises((InputError, StoreDamagedError)):
            read_export(PATH, other, NOW)


def test_a_json_form_that_was_edited_is_refused() -> None:
    store = MemoryStore()
    fill(store, ("a",))
    data = export_json(export_entries(store, mask=False), NOW).replace(b"changed", b"chanted")
    with pytest.raises(StoreDamagedError, match="as ctxgc wrote"):
        read_export(PATH, data, NOW)


def test_masked_exports_hold_no_key_and_no_checkpoint() -> None:
    store = MemoryStore()
    store.commit("a", [Put(each, "k", segment(f"use {KEY} now", "k")) for each in COLLECTIONS])
    export = read_export(PATH, lines(store, mask=True), NOW)
    assert export.masked
    assert [entry.collection for entry in export.entries] == [
        "segments", "messages", "collections", "events", "state",
    ]  # fmt: skip
    assert export.entries[0].doc["text"] == "use [secret:github-token] now"


def test_chosen_sessions_are_known_ones() -> None:
    store = MemoryStore()
    fill(store, ("alpha", "beta"))
    assert chosen_sessions(store) == ["alpha", "beta"]
    assert chosen_sessions(store, ["beta", "beta"]) == ["beta"]
    with pytest.raises(InputError, match="no session 'alpa' in memory:") as e:
        chosen_sessions(store, ["alpa"])
    assert (e.value.hint, e.value.details) == ("did you mean 'alpha'?", {"field": "session_id"})


def test_a_file_is_private_and_whole_or_not_there(tmp_path: Path) -> None:
    path = tmp_path / "new" / "export.jsonl"
    write_export(path, [b"x" * (1 << 21)] * 5)
    assert path.stat().st_size == 5 << 21
    assert path.stat().st_mode & 0o777 == 0o600

    def fails() -> object:
        yield b"half"
        raise StoreError("the server is gone")

    with pytest.raises(StoreError, match="gone"):
        write_export(path, fails())  # type: ignore[arg-type]
    assert [each.name for each in path.parent.iterdir()] == ["export.jsonl"]
    assert path.stat().st_size == 5 << 21
