"""ctxgc answers as it is written down in `files/`, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.golden import goldens
from tools.golden.places import FILES
from tools.golden.stored import lived_and_continued

BOOK = goldens()


@pytest.mark.parametrize("name", BOOK.names())
def test_the_answer_is_the_one_that_is_written_down(name: str) -> None:
    difference = BOOK.difference(name)
    assert not difference, difference


def test_each_file_has_its_golden() -> None:
    assert sorted(path.name for path in FILES.iterdir()) == BOOK.names()


def test_a_store_in_memory_answers_as_a_json_store(tmp_path: Path) -> None:
    stored = lived_and_continued(f"json:{tmp_path}/stored.json", tmp_path)
    assert lived_and_continued("memory:", tmp_path).splitlines() == stored.splitlines()
