"""Texts to count: a table with the counts of eleven tokenizers, and a generator of long texts."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import NamedTuple


class Sample(NamedTuple):
    """A text and its count in each tokenizer of the table."""

    name: str
    text: str
    counts: dict[str, int]


def _table() -> tuple[Sample, ...]:
    path = Path(__file__).with_name("counts.json")
    return tuple(Sample(**row) for row in json.loads(path.read_text(encoding="utf-8"))["samples"])


TABLE = _table()

_SENTENCE = (
    "the collector keeps what a root reaches and moves everything else out of the window "
    "without losing it; nothing is deleted unless somebody asks for it by name (really)."
)
_WORDS = _SENTENCE.split()
_CODE = (
    "def mark(roots: list[str]) -> set[str]:",
    "    seen = set(roots)",
    "    while stack:",
    "\t\tif err != nil {",
    "        stack.extend(self._links[stack.pop()])  # cycles are fine",
    "    return {key: value for key, value in seen.items() if value >= 0x1F}",
    "",
    "//",
    "/* a slash after a break; */",
    "x = a[i];",
    "/usr/bin/env python",
)
_CJK = (
    "垃圾收集器找出不再需要的内容，并把它们移到别处。"
    "もう必要のないものを見つけます。쓸모없는 것을 찾습니다 "
)


def long_text(kind: str, chars: int, seed: int = 0) -> str:
    """Return `chars` characters of prose, code, log, json or cjk; the same for the same seed."""
    rnd = random.Random(f"{kind}-{seed}")
    made: list[str] = []
    length = 0
    while length < chars:
        made.append(_MAKERS[kind](rnd))
        length += len(made[-1])
    return "".join(made)[:chars]


def _prose(rnd: random.Random) -> str:
    return " ".join(rnd.choices(_WORDS, k=12)) + rnd.choice([".\n", ".  ", "!\n\n", "? "])


def _code(rnd: random.Random) -> str:
    return rnd.choice(_CODE) + rnd.choice(["\n", "\n", "\r\n", "\n\n", " \n"])


def _log(rnd: random.Random) -> str:
    took = f"took {rnd.randrange(10**5)} ms, id={rnd.randbytes(4).hex()}"
    return f"2026-11-{rnd.randrange(10, 30)} 12:{rnd.randrange(10, 60)}:07,{rnd.randrange(999)} INFO {took}\n"


def _json(rnd: random.Random) -> str:
    row = {"id": rnd.randrange(10**6), "path": f"/src/f{rnd.randrange(99)}.py", "ok": None}
    return json.dumps(row, indent=rnd.choice([None, 2])) + ",\n"


def _cjk(rnd: random.Random) -> str:
    start = rnd.randrange(len(_CJK))
    return _CJK[start:] + rnd.choice(["\n", "。", "\n\n"])


_MAKERS = {"prose": _prose, "code": _code, "log": _log, "json": _json, "cjk": _cjk}
KINDS = tuple(_MAKERS)
