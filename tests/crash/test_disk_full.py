"""Real disks that are full or read-only: a typed error, the old state, and a cure that works."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxgc.errors import StoreError
from ctxgc.stores import Put, Store, open_store
from tests.crash.programs import PLACES
from tests.crash.workload import SESSION, batch, check, expected, held


def _mount(folder: Path, options: str) -> str:
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)],
        capture_output=True,
        check=False,
        encoding="utf-8",
    )
    return done.stderr


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own of half a megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if said := _mount(folder, "size=512k"):
        pytest.skip(f"a small disk cannot be mounted here: {said.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def _fill(store: Store) -> tuple[int, StoreError]:
    """Commit until the disk is full; return the number of good commits and the error."""
    for number in range(1, 10_000):
        try:
            store.commit(SESSION, [*batch(number), *batch(number + 100_000)[-6:-1]])
        except StoreError as error:
            return number - 1, error
    raise AssertionError("the disk never was full")


@pytest.mark.parametrize("place", PLACES)
def test_a_full_disk_keeps_what_it_has_and_works_again(place: str, disk: Path) -> None:
    store = open_store(place.format(disk))
    good, error = _fill(store)
    assert "full" in error.hint
    before = held(store)
    assert before["state"] == [("counter", {"commit": good})]
    with pytest.raises(StoreError):
        store.commit(SESSION, [Put("segments", "huge", {"text": "x" * 600_000})])
    assert (store.revision(SESSION), held(store)) == (good, before)
    assert _mount(disk, "remount,size=8m") == ""
    assert store.commit(SESSION, batch(good + 1)) == good + 1
    store.close()
    again = open_store(place.format(disk))
    assert held(again)["state"] == [("counter", {"commit": good + 1})]
    assert len(held(again)["segments"]) >= len(before["segments"])


@pytest.mark.parametrize("place", PLACES)
def test_a_read_only_disk_is_a_typed_error_until_it_is_writable(place: str, disk: Path) -> None:
    url = place.format(disk)
    store = open_store(url)
    for number in range(1, 4):
        store.commit(SESSION, batch(number))
    store.close()
    assert _mount(disk, "remount,ro") == ""
    with pytest.raises(StoreError) as error:
        open_store(url).commit(SESSION, batch(4))
    assert "read-only" in error.value.hint
    assert _mount(disk, "remount,rw") == ""
    assert held(store) == expected(3)
    assert store.commit(SESSION, batch(4), expect=3) == 4
    store.close()
    check(url, 4)


def test_a_json_store_can_be_read_where_nothing_can_be_written(disk: Path) -> None:
    url = f"json:{disk}/stash.json"
    open_store(url).commit(SESSION, batch(1))
    assert _mount(disk, "remount,ro") == ""
    assert held(open_store(url)) == expected(1)
