from __future__ import annotations

from typing import Any

import pytest

from ctxgc.errors import DuplicateSegmentError, InputError, SegmentError
from ctxgc.stores import (
    ExportEntry,
    MemoryStore,
    Put,
    Store,
    export_entries,
    import_entries,
    session_digest,
)
from ctxgc.stores.transfer import ImportResult
from tests.stores.places import segment


def entries(*names: str) -> list[ExportEntry]:
    source = MemoryStore()
    for name in names or ("a",):
        segments = [Put("segments", key, segment(f"text {key}", key)) for key in ("s1", "s2")]
        source.commit(
            name, [*segments, Put("messages", "m", {"n": 1}), Put("state", "x", {"y": 2})]
        )
    return list(export_entries(source, mask=False))


def everything(store: Store) -> list[ExportEntry]:
    return list(export_entries(store, mask=False))


def test_a_new_session_comes_in_whole_and_twice_is_once(store: Store) -> None:
    assert import_entries(store, entries("a", "b")) == ImportResult(sessions=("a", "b"), added=8)
    assert everything(store) == entries("a", "b")
    again = import_entries(store, entries("a", "b"))
    assert again == ImportResult(sessions=("a", "b"), present=8)
    assert [info.revision for info in store.sessions()] == [1, 1]


def test_a_session_that_went_on_keeps_its_own_and_gets_back_what_it_lost(store: Store) -> None:
    import_entries(store, entries())
    touched = segment("text s1", "s1", touches=5)
    store.commit("a", [Put("segments", "s1", touched), Put("state", "x", {"y": 3})])
    store.drop_session("b")
    more = [
        *entries(),
        ExportEntry("a", "segments", "s3", segment("lost", "s3", tier="working")),
        ExportEntry("a", "messages", "m9", {"n": 9}),
    ]
    done = import_entries(store, more)
    assert done == ImportResult(sessions=("a",), added=1, present=2, kept=3)
    assert store.load("a", "segments") == [
        ("s1", touched),
        ("s2", segment("text s2", "s2")),
        ("s3", segment("lost", "s3", tier="stashed")),
    ]
    assert store.load("a", "messages") == [("m", {"n": 1})]
    assert store.load("a", "state") == [("x", {"y": 3})]


def test_another_text_under_the_same_id_stops_it_before_anything_is_written(store: Store) -> None:
    store.commit("b", [Put("segments", "s2", segment("mine", "s2"))])
    before = session_digest(store, "b")
    with pytest.raises(DuplicateSegmentError, match="'b' holds another text under 's2'") as caught:
        import_entries(store, entries("a", "b"))
    assert caught.value.details == {"session_id": "b", "keys": ["s2"]}
    assert session_digest(store, "b") == before
    assert store.revision("a") == 0


def test_a_session_can_come_in_under_another_name() -> None:
    store = MemoryStore()
    store.commit("a", [Put("segments", "s2", segment("mine", "s2"))])
    assert import_entries(store, entries(), into="copy") == ImportResult(
        sessions=("copy",), added=4
    )
    assert store.get("copy", "segments", "s2") == segment("text s2", "s2")
    with pytest.raises(InputError, match="2 sessions cannot all be 'copy'"):
        import_entries(store, entries("a", "b"), into="copy")


def test_segments_without_an_id_get_their_key() -> None:
    store = MemoryStore()
    plain: dict[str, Any] = {"text": "one", "type": "note"}
    for _ in range(2):
        import_entries(store, [ExportEntry("default", "segments", "segment-1", plain)])
    assert store.load("default", "segments") == [
        ("segment-1", {**plain, "segment_id": "segment-1"})
    ]


def test_what_is_no_segment_is_refused_with_its_field() -> None:
    store = MemoryStore()
    odd = ExportEntry("a", "segments", "s9", {"text": "one", "type": "poem"})
    with pytest.raises(SegmentError, match="'s9' of session 'a' is not a segment") as caught:
        import_entries(store, [*entries(), odd])
    assert caught.value.details["field"] == "type"
    assert store.sessions() == []


def test_progress_is_told_session_by_session() -> None:
    told: list[tuple[int, int]] = []
    import_entries(MemoryStore(), entries("a", "b"), progress=lambda *now: told.append(now))
    assert told == [(1, 2), (2, 2)]
