"""What kind of text is this, and how much of it is what tokenizers disagree about?

Two tokenizers agree best on English words and differ on digits, white space, long runs and scripts other
than Latin. `features` counts those characters; `classify` names the kind of the rest.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

TextClass = Literal["prose", "code", "log", "json", "cjk"]
CLASSES: tuple[TextClass, ...] = ("prose", "code", "log", "json", "cjk")

SAMPLE_CHARS = 8192
"""`classify` looks at no more than this, so that its work does not grow with the text."""

_CJK = re.compile(
    "[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef]|[\U0001b000-\U0001b16f\U00020000-\U0003ffff]"
)
_LOG_LINE = re.compile(
    r"^.{0,40}(?:\d\d:\d\d:\d\d|\d{4}-\d\d-\d\d|\b(?:DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|TRACE)\b)",
    re.MULTILINE,
)
_JSON_KEY = re.compile(r'"\s*:')
_RUN = re.compile(r"(.)\1{7,}", re.DOTALL)
_CODE_MARKS = str.maketrans("", "", "(){}[];=<>_\\/*#&|+$@")
_DIGITS = b"0123456789"
_CAPITALS = bytes(range(ord("A"), ord("Z") + 1))
_BREAKS = b"\t\n\r"
_CONTROLS = bytes(set(range(32)) - set(_BREAKS)) + b"\x7f"


class Features(NamedTuple):
    """How many characters of a text are of a sort that tokenizers split differently."""

    digits: int = 0
    capitals: int = 0
    breaks: int = 0
    controls: int = 0
    runs: int = 0
    cjk: int = 0
    script: int = 0


def features(text: str) -> Features:
    """Return the counts; `runs` are runs of eight or more, `script` is neither ASCII nor CJK."""
    plain = text.encode("ascii", "ignore")
    cjk = 0 if len(plain) == len(text) else len(_CJK.findall(text))
    return Features(
        digits=_count(plain, _DIGITS),
        capitals=_count(plain, _CAPITALS),
        breaks=_count(plain, _BREAKS),
        controls=_count(plain, _CONTROLS),
        runs=sum(len(match[0]) for match in _RUN.finditer(text)),
        cjk=cjk,
        script=len(text) - len(plain) - cjk,
    )


def classify(text: str) -> TextClass:
    """Return the kind of text that the start of `text` looks like; prose when nothing else is plain."""
    sample = text[:SAMPLE_CHARS].strip()
    if not sample.isascii() and len(_CJK.findall(sample)) * 5 > len(sample):
        return "cjk"
    if sample[:1] in {"{", "["} and len(_JSON_KEY.findall(sample)) * 100 > len(sample):
        return "json"
    if len(_LOG_LINE.findall(sample)) * 3 > sample.count("\n") + 1:
        return "log"
    marks = len(sample) - len(sample.translate(_CODE_MARKS))
    return "code" if marks * 20 > len(sample) else "prose"


def _count(plain: bytes, wanted: bytes) -> int:
    return len(plain) - len(plain.translate(None, delete=wanted))
