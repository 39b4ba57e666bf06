"""Evidence, in the words people use: paths, commands, numbers, decisions, errors and constraints.

The definitions are the lab's own, like those of `facts`: what a policy or a hook believes to be a
decision must not decide whether it kept one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Literal, get_args

from ctxgc.lab.facts import decoded, is_path, lines_in, texts_of, tokens_in, values_of

EvidenceKind = Literal["path", "command", "number", "decision", "error", "constraint"]
EVIDENCE_KINDS: tuple[EvidenceKind, ...] = get_args(EvidenceKind)
FoundEvidence = tuple[EvidenceKind, str]
"""A kind and a text, which `shown_in` finds again wherever somebody writes it."""

_LEAST_SAYING = 8
_MOST_SAYING = 300
_LEAST_DIGITS = 3
_OUTER = " \"'`“”*_.:;,!?"

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_MARKER = re.compile(r"(?:[-*>$#•]+|\d{1,2}[.)])\s+")
# A unit may follow (`120ms`, `73%`) and is not part of the number: people write it in many ways.
_NUMBER = re.compile(r"(?<![\w./-])\d++(?:[.,:]\d++)*+(?=[A-Za-z]{0,3}(?![\w/-]))")
_LINE_NUMBER = re.compile(
    r"\d++[:|-](?!\d)"
)  # as searches write it; `lines_in` takes off that of viewers
_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
_COMMAND_KEYS = frozenset({"command", "cmd", "commands", "keystrokes"})
_ERROR = re.compile(
    r"(?:^|[:\]|]\s)\W{0,4}"
    r"(?:[\w.]*(?:Error|Exception)(?:[:(]|$)|(?i:error|fatal|panic|traceback)\b|FAIL(?:ED)?\b)"
)
_DECISION = re.compile(
    r"\b(?:decid(?:e|ed|ing)|decision|chose|chosen|opt(?:ed)? for|go(?:ing)? with|settled? on|"
    r"instead of|rather than|(?:i|we)(?:'ll| will) (?:use|keep|change|add|make)|root cause|the fix is)\b",
    re.IGNORECASE,
)
_CONSTRAINT = re.compile(
    r"\b(?:must|never|always|do not|don't|should not|shouldn't|may not|only|at most|at least|"
    r"without|make sure|ensure|not allowed|required?|avoid)\b",
    re.IGNORECASE,
)


def evidence_in(message: Mapping[str, Any]) -> frozenset[FoundEvidence]:
    """Return the evidence that a message brings.

    | kind | is |
    |---|---|
    | path | a place in a tree of files, as `facts` reads it, anywhere |
    | number | three digits or more, with or without a point; not the number of a line |
    | command | the first line of what a call gives to a shell |
    | error | a line of a result that begins like an error, or says one after a colon; not in a file view |
    | decision | a sentence of the agent that says what it chose, or found to be the cause |
    | constraint | a sentence of the user or of the instructions that allows, forbids or demands |
    """
    texts = texts_of(message)
    found: set[FoundEvidence] = {("path", path) for path in _paths(texts)}
    found.update(("number", number) for number in _numbers(texts))
    found.update(("command", said) for said in _commands(message))
    content = texts_of({"content": message.get("content")})
    match message.get("role"):
        case "tool":
            found.update(("error", said) for said in _errors(content))
        case "assistant":
            found.update(("decision", said) for said in _sentences(content, _DECISION))
        case "user" | "system" | "developer":
            found.update(("constraint", said) for said in _sentences(content, _CONSTRAINT))
    return frozenset(found)


def shown_in(texts: Iterable[str]) -> frozenset[str]:
    """Return everything that counts as said in texts: paths, numbers, whole lines and whole sentences."""
    known = tuple(texts)
    lines = (line for text in known for line in lines_in(text, _LEAST_SAYING))
    sentences = (sentence for text in known for sentence in _split(text))
    said = map(_plain, (*lines, *sentences))
    return frozenset([*_paths(known), *_numbers(known), *filter(None, said)])


def _paths(texts: Iterable[str]) -> Iterator[str]:
    return (fact for text in texts for (fact, _), _ in tokens_in(text) if fact and is_path(fact))


def _numbers(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        for line in lines_in(text, _LEAST_DIGITS):
            edge = _LINE_NUMBER.match(line)
            found = _NUMBER.findall(line, edge.end() if edge else 0)
            yield from (n for n in found if sum(map(str.isdigit, n)) >= _LEAST_DIGITS)


def _commands(message: Mapping[str, Any]) -> Iterator[str]:
    for call in message.get("tool_calls") or ():
        function = call.get("function") if isinstance(call, Mapping) else None
        given = decoded(function.get("arguments")) if isinstance(function, Mapping) else None
        if isinstance(given, dict):
            for key in _COMMAND_KEYS & given.keys():
                yield from _first_lines(values_of(given[key]))


def _first_lines(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield from islice(filter(None, map(_plain, lines_in(text, _LEAST_SAYING))), 1)


def _errors(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        for line in text.split("\n"):
            # A numbered line is a file's, which says what would be an error and not that there was one.
            bare = next(lines_in(line, _LEAST_SAYING), "")
            if bare == line.strip() and _ERROR.search(bare) and (said := _plain(bare)):
                yield said


def _sentences(texts: Iterable[str], pattern: re.Pattern[str]) -> Iterator[str]:
    for text in texts:
        for sentence in _split(text):
            if pattern.search(sentence) and (said := _plain(sentence)):
                yield said


def _split(text: str) -> list[str]:
    """Return the sentences of a text, without what a host repeats in its own name."""
    return _SENTENCE.split(_REMINDER.sub("\n", text))


def _plain(text: str) -> str:
    """Return what a line or sentence says: no list marker, quotes or end marks; "" if it is too short."""
    words = " ".join(text.split())
    marker = _MARKER.match(words)
    said = (words[marker.end() :] if marker else words).strip(_OUTER)[:_MOST_SAYING]
    return said if len(said) >= _LEAST_SAYING else ""
