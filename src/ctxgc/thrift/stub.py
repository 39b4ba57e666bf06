"""The texts that thrift leaves behind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ctxgc.core.text import Text
from ctxgc.core.tombstone import OPENING
from ctxgc.thrift.copies import Run
from ctxgc.thrift.cover import Cover

HEAD_CHARS = 60
GAP = "…"


def stub(text: Text, cover: Cover, *, tokens: int, why: str, recall: str) -> str:
    """Return the text that stands in for a result: a tombstone, the names, the lines that stay."""
    call = f"; {recall}" if recall else ""
    head = f"{OPENING} {tokens} tokens, {why}{call}]"
    names = [f"Names: {' '.join(cover.listed)}"] if cover.listed else []
    return "\n".join([head, *names, *_with_gaps(text, cover.kept)])


def _with_gaps(text: Text, kept: Sequence[int]) -> Iterator[str]:
    """Yield the lines that stay, and a mark for each gap that their own numbers do not show."""
    last = -1
    for line in kept:
        if line > last + 1 and not text.is_numbered(line):
            yield GAP
        yield text.lines[line]
        last = line


def without_copies(text: Text, runs: Sequence[Run], names: Mapping[str, str], recall: str) -> str:
    """Return a result in which runs of lines that stand above are replaced by a mark.

    Args:
        text: the result.
        runs: what need not be sent.
        names: what to call each source.
        recall: the call that recalls the result as it was; the first mark carries it.
    """
    call = f"; {recall}" if recall else ""
    passages: list[str] = []
    last = 0
    for run in runs:
        passages.append(text.passage(last, run.first))
        lines = f"{run.last - run.first} lines of the {names[run.source]} above"
        passages.append(f"[ctxgc = {lines}{call}]\n")
        last, call = run.last, ""
    passages.append(text.passage(last, len(text.lines)))
    return "".join(passages).removesuffix("\n")
