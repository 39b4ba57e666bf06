"""What Claude Code keeps beside a tool result for its own screen, made to say what the result says."""

from __future__ import annotations

from typing import Any

_SHORT = 200
"""Texts up to this length say what was done, not what came out; they stay."""
_NUMBERED = "→"


def edited_result(kept: Any, before: str, after: str) -> Any:
    """Return the value of `toolUseResult` once the result's text is another.

    Args:
        kept: the value as it is: a text, or an object whose fields depend on the tool.
        before: the text of the result as it was.
        after: the text that stands there now.

    The first field that holds what the result said gets the new text; what repeats it elsewhere is
    taken out. Everything else stays, such as paths, counts and the patch of an edit.
    """
    if isinstance(kept, str):
        return after
    return _Editing(before, after).edit(kept)


class _Editing:
    """One walk over a value."""

    def __init__(self, before: str, after: str) -> None:
        self._before = before
        self._bare = _without_numbers(before)
        self._after = after
        self._placed = False

    def edit(self, value: Any) -> Any:
        if isinstance(value, dict):
            edited = {key: self.edit(each) for key, each in value.items()}
            if "numLines" in value and edited != value:
                edited["numLines"] = self._after.count("\n") + 1
            return edited
        if isinstance(value, list):
            return [self.edit(each) for each in value]
        return self._replace(value) if isinstance(value, str) and self._is_said(value) else value

    def _is_said(self, text: str) -> bool:
        if len(text) <= _SHORT:
            return False
        said = text.strip()
        return said in self._before or said in self._bare or said.startswith(self._before[:_SHORT])

    def _replace(self, _: str) -> str:
        if self._placed:
            return ""
        self._placed = True
        return self._after


def _without_numbers(text: str) -> str:
    """The text of a Read without the line numbers in front of its lines."""
    lines = text.split("\n")
    return "\n".join(
        rest if sep and number.strip().isdigit() else line
        for line in lines
        for number, sep, rest in [line.partition(_NUMBERED if _NUMBERED in line else "\t")]
    )
