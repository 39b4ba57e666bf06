"""The notes that ctxgc leaves in a view: how each of them is written, and how it is recognised.

Every note starts with `[ctxgc`. A tombstone says what was moved out, how large it was, why it left,
which identifiers went with it, and the exact call that brings it back. Verbatim lines may follow it,
with a mark wherever lines are missing. This file needs no other, so that a hook can load it quickly.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ctxgc.core.segment import ContextSegment

OPENING = "[ctxgc:"
NAMES = "Names: "
RECALL_TOOL = "context_recall"
SEARCH_TOOL = "context_search"

HANDLE = re.compile(r"h-[a-z2-7]{16}")
_MOVED_OUT = re.compile(
    re.escape(OPENING) + rf" ([^\n]{{1,160}}?) moved out[^\n]*?({HANDLE.pattern})"
)


# -- Calls that recall


def recall_template(tool: str = RECALL_TOOL) -> str:
    """Return how a model calls this tool to recall something, with `{handle}` for the handle."""
    return f'{tool}(handle="{{handle}}")'


RECALL_CALL = recall_template()


def recall_call(handle: str, template: str = RECALL_CALL) -> str:
    """Return the exact call that recalls a handle."""
    return template.replace("{handle}", handle)


def search_call(recall: str) -> str:
    """Return how a model that recalls like this searches; empty if its tool is not ours."""
    tool = recall.partition("(")[0]
    ours = tool.endswith(RECALL_TOOL)
    return f"{tool.removesuffix(RECALL_TOOL)}{SEARCH_TOOL}(query)" if ours else ""


# -- Notes


def note(text: str) -> str:
    """Return a note of one line."""
    return f"{OPENING} {' '.join(text.splitlines())}]"


def long_tombstone(
    segment: ContextSegment,
    why: str,
    *,
    handle: str,
    recall: str = RECALL_CALL,
    names: tuple[str, ...] = (),
    kept: str = "",
) -> str:
    """Return the text that takes the place of a segment.

    Args:
        segment: what was moved out.
        why: the reason of the plan.
        handle: what recalls it; an empty one leaves the recall call out.
        recall: the exact call to make, with `{handle}` for the handle.
        names: identifiers that only the stash still holds.
        kept: verbatim lines that stay.
    """
    call = recall_call(handle, recall) if handle else ""
    head = moved_note(describe(segment), segment.tokens or 0, why, names=names, recall=call)
    return f"{head}\n{kept}" if kept else head


def moved_note(
    what: str, tokens: int | str, why: str, *, names: Iterable[str] = (), recall: str = ""
) -> str:
    """Return the first line of a tombstone; `recall` is the exact call, or empty."""
    parts = [f"{what} moved out, {tokens} tokens: {why}"]
    if listed := ", ".join(names):
        parts.append(NAMES + listed)
    if recall:
        parts.append(f"To see it again: {recall}")
    return note(". ".join(parts))


def short_tombstone(tokens: int, why: str, *, recall: str, names: Iterable[str], kept: str) -> str:
    """Return a tombstone that does not say what was there, for a result whose call is in view."""
    head = note(f"{tokens} tokens, {why}{f'; {recall}' if recall else ''}")
    listed = " ".join(names)
    return "\n".join([head, *([NAMES + listed] if listed else []), *([kept] if kept else [])])


_COPY = "[ctxgc = "


def copy_mark(text: str) -> str:
    """Return the mark for lines that were shown before, elsewhere in the view."""
    return f"{_COPY}{text}]"


def points_back(text: str) -> bool:
    """Return whether lines of a text were left out because they were shown before."""
    return _COPY in text


def describe(segment: ContextSegment) -> str:
    """Return what a segment is in a few words: its name, file or command, else its type."""
    if segment.name:
        return f"{segment.type} '{segment.name}'"
    if segment.file_path:
        lines = f":{segment.line_range[0]}-{segment.line_range[1]}" if segment.line_range else ""
        return f"{segment.access or segment.type} of {segment.file_path}{lines}"
    if segment.command:
        return f"output of {short_command(segment.command)}"
    return segment.type


def short_command(command: str) -> str:
    """Return a command as a tombstone names it: at most 80 characters of it."""
    return command if len(command) <= 80 else f"{command[:77]}..."


def is_tombstone(text: str) -> bool:
    """Return whether a text is one that ctxgc left in place of another."""
    return text.startswith(OPENING)


def looks_like_ours(line: str) -> bool:
    """Return whether a reader could take a line for one that ctxgc wrote: a note, or the mark of a gap.

    No such line of another text is quoted under a note of ours.
    """
    # Most lines have none of these, and every line of a view may be asked about.
    is_candidate = "[" in line or NAMES in line or SHORT_GAP in line
    return is_candidate and _OURS.search(line) is not None


def kept_of(text: str) -> str:
    """Return the verbatim lines under a tombstone, without the marks of gaps."""
    lines = text.split("\n")[1:]
    return "\n".join(line for line in lines if line != GAP and not line.startswith(NAMES))


def moved_handles(text: str) -> dict[str, str]:
    """Return the handles that the tombstones in a text name, each with what it was."""
    return {handle: what for what, handle in _MOVED_OUT.findall(text)}


# -- Gaps


GAP = "[...]"
SHORT_GAP = "…"
_OURS = re.compile(
    rf"(?i:\[ctxgc)|(?:^|[\r\v\f\x1c-\x1e\x85\u2028\u2029])\s*(?:\[\.\.\.|{NAMES}|{SHORT_GAP}\s*$)"
)
"""A line that only ends in a browser or a terminal counts as two."""


def quotable(lines: Sequence[str], places: Iterable[int]) -> Iterator[int]:
    """Yield the places whose lines may be quoted under a note of ours: those that do not look like ours."""
    return (place for place in places if not looks_like_ours(lines[place]))


def with_gaps(
    lines: Sequence[str],
    kept: Iterable[int],
    mark: Callable[[int, int], str] = lambda *_: GAP,
    ends: Sequence[str] | None = None,
) -> str:
    """Return the lines that stay, and a mark for each gap before, between and after them.

    `mark` is given the first missing line and the one after the last; an empty mark is left out. `ends`
    are what follows each line: nothing where the next one is a part of the same line. Lines that look like
    ours do not stay.
    """
    shown: list[str] = []
    following = 0
    for place in [*quotable(lines, kept), len(lines)]:
        if place > following and (gap := mark(following, place)):
            shown += ["\n" if shown else "", gap]
        if place < len(lines):
            is_same_line = ends and place and place == following and not ends[place - 1]
            shown += ["" if is_same_line or not shown else "\n", lines[place]]
        following = place + 1
    return "".join(shown)
