"""Read Markdown as the docs tests need it: code blocks, links and headings with their lines."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,}|~{3,})(?P<language>[\w+-]*).*$")
_SKIP = re.compile(r"^<!-- not executed:(?P<reason>.*)-->$")
_LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)(?: \"[^\"]*\")?\)")


@dataclass(frozen=True)
class Block:
    """A fenced block: `line` is its first line of text; `skip` is why it is not executed, if so."""

    language: str
    text: str
    line: int
    skip: str | None = None


@dataclass(frozen=True)
class Page:
    """A Markdown file: its fenced blocks, and its lines with those blocks blanked out."""

    path: Path
    blocks: tuple[Block, ...]
    prose: tuple[str, ...]

    def links(self) -> list[tuple[int, str]]:
        """Return each link's line and target, without those inside code."""
        return [
            (number, found["target"])
            for number, line in enumerate(self.prose, start=1)
            for found in _LINK.finditer(re.sub(r"`[^`]*`", "", line))
        ]

    def anchors(self) -> set[str]:
        """Return the anchors that the headings make."""
        headings = (line.lstrip("#") for line in self.prose if re.match(r"#{1,6} ", line))
        return {_slug(heading) for heading in headings}


def read(path: Path) -> Page:
    """Return the page; an unclosed fence raises ValueError."""
    lines = path.read_text(encoding="utf-8").splitlines()
    blocks: list[Block] = []
    prose = list(lines)
    number = 0
    while number < len(lines):
        if opening := _FENCE.match(lines[number]):
            end = _closing(lines, number, opening, path)
            blocks.append(_block(lines, number, end, opening))
            prose[number : end + 1] = [""] * (end + 1 - number)
            number = end
        number += 1
    return Page(path, tuple(blocks), tuple(prose))


def _closing(lines: list[str], start: int, opening: re.Match[str], path: Path) -> int:
    for number in range(start + 1, len(lines)):
        if lines[number].strip() == opening["ticks"]:
            return number
    raise ValueError(f"{path}:{start + 1}: this block is never closed")


def _block(lines: list[str], start: int, end: int, opening: re.Match[str]) -> Block:
    skip = _SKIP.match(lines[start - 1].strip()) if start else None
    body = (line.removeprefix(opening["indent"]) for line in lines[start + 1 : end])
    reason = skip["reason"].strip() if skip else None
    return Block(opening["language"], "\n".join(body), start + 2, reason)


def _slug(heading: str) -> str:
    kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return kept.replace(" ", "-")
