from __future__ import annotations

import hashlib
import importlib.util
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.errors import VocabularyError
from ctxgc.tokens import ExactCounter, counter_for, exact, models
from tools import pack_vocab

NAMES = tuple(exact.VOCABULARIES)


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    """Let each test meet a process that has loaded nothing, and put what was loaded back."""
    loaded = dict(exact._loaded)
    _clear()
    yield
    _clear()
    exact._loaded.update(loaded)


def _clear() -> None:
    exact._loaded.clear()
    for memo in (exact.usable, models._exact, models._bound):
        memo.cache_clear()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a copy of the shipped files that may be damaged."""
    shipped = Path(exact.__file__).with_name("vocab")
    copy = tmp_path / "vocab"
    copy.mkdir()
    for file in shipped.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    monkeypatch.setattr(exact.resources, "files", lambda _: tmp_path)
    return copy


@pytest.mark.parametrize("name", NAMES)
def test_the_shipped_file_holds_every_token_once_in_rank_order(name: str) -> None:
    ranks = exact.unpack(name, exact.read(name))
    assert list(ranks.values()) == list(range(exact.VOCABULARIES[name].tokens))
    assert {bytes([byte]) for byte in range(256)} <= ranks.keys()


@pytest.mark.parametrize("name", NAMES)
def test_the_packing_tool_makes_the_shipped_file_again(name: str) -> None:
    tokens = list(exact.unpack(name, exact.read(name)))
    plain, _ = pack_vocab.pack(tokens)
    assert hashlib.sha256(plain).hexdigest() == exact.VOCABULARIES[name].plain_sha256


def test_the_packing_tool_reads_ranks_in_any_order() -> None:
    assert pack_vocab.read_tokens(b"Yg== 1\nYQ== 0\n\n") == [b"a", b"b"]


def test_the_packing_tool_refuses_a_file_it_does_not_know(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "other.tiktoken"
    path.write_bytes(b"YQ== 0\n")
    assert pack_vocab.main([str(path)]) == 1
    assert "not a rank file that this tool knows" in capsys.readouterr().err


def test_the_notice_names_origin_and_licence() -> None:
    notice = Path(exact.__file__).with_name("vocab").joinpath("NOTICE").read_text("utf-8")
    assert "MIT License" in notice
    assert all(digest in notice for digest in pack_vocab.RANK_FILES)


@pytest.mark.parametrize("position", [0, 1, 5000, -1])
def test_a_flipped_bit_is_a_typed_error(folder: Path, position: int) -> None:
    path = folder / "o200k_base.bin"
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)
    with pytest.raises(VocabularyError, match="o200k_base is not what was shipped") as raised:
        ExactCounter("o200k_base").count("text")
    assert (raised.value.details, raised.value.hint) == (
        {"encoding": "o200k_base"},
        "install ctxgc again",
    )


@pytest.mark.parametrize("content", [b"", b"short"])
def test_a_cut_off_file_is_a_typed_error(folder: Path, content: bytes) -> None:
    (folder / "cl100k_base.bin").write_bytes(content)
    with pytest.raises(VocabularyError, match="cl100k_base"):
        exact.load("cl100k_base")


def test_a_missing_file_is_a_typed_error(folder: Path) -> None:
    (folder / "cl100k_base.bin").unlink()
    with pytest.raises(VocabularyError, match="cl100k_base cannot be read"):
        exact.load("cl100k_base")


@given(st.binary(max_size=50))
def test_unpacking_what_was_not_packed_is_a_typed_error(packed: bytes) -> None:
    with pytest.raises(VocabularyError):
        exact.unpack("o200k_base", packed)


def test_a_failed_load_may_be_repeated_once_the_file_is_cured(folder: Path) -> None:
    path = folder / "cl100k_base.bin"
    intact = path.read_bytes()
    path.write_bytes(b"damaged")
    with pytest.raises(VocabularyError):
        exact.load("cl100k_base")
    path.write_bytes(intact)
    assert ExactCounter("cl100k_base").count("Hello, world!") == 4


@pytest.mark.parametrize("model", ["gpt-4o", "claude-opus-5", None, "who-knows"])
def test_a_damaged_vocabulary_leaves_every_model_an_estimate(
    folder: Path, model: str | None
) -> None:
    (folder / "o200k_base.bin").write_bytes(b"damaged")
    counter = counter_for(model)
    assert not counter.exact
    assert "characters" in counter.name
    assert counter.count("Hello, world!") >= 4


def test_one_damaged_vocabulary_leaves_the_other_exact(folder: Path) -> None:
    (folder / "o200k_base.bin").write_bytes(b"damaged")
    assert counter_for("gpt-4").exact


def test_without_tiktoken_loading_is_a_typed_error_and_models_get_an_estimate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with pytest.raises(VocabularyError, match="tiktoken cannot be imported"):
        ExactCounter().count("text")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert counter_for("gpt-4o").name == "characters"


def test_asking_for_a_counter_loads_nothing() -> None:
    counter_for("gpt-4o")
    counter_for("claude")
    assert exact._loaded == {}


def test_threads_that_come_first_share_one_load(monkeypatch: pytest.MonkeyPatch) -> None:
    unpacked: list[str] = []
    real = exact.unpack
    start = threading.Barrier(8)

    def unpack(name: str, packed: bytes) -> dict[bytes, int]:
        unpacked.append(name)
        return real(name, packed)

    def count(_: int) -> int:
        start.wait()
        return ExactCounter("cl100k_base").count("Hello, world!")

    monkeypatch.setattr(exact, "unpack", unpack)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(count, range(8))) == [4] * 8
    assert unpacked == ["cl100k_base"]
