"""What every token counter can do."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from ctxgc.errors import InputError


@runtime_checkable
class TokenCounter(Protocol):
    """Counts the tokens of a text; never raises on any `str`, and `count("")` is 0."""

    @property
    def name(self) -> str:
        """What did the counting, for people: an encoding, or the profile of an estimate."""
        ...

    @property
    def exact(self) -> bool:
        """Whether the counts are those of the model's own tokenizer rather than an estimate."""
        ...

    def count(self, text: str) -> int:
        """Return the number of tokens in `text`."""
        ...


def require_text(text: object) -> str:
    """Return `text` if it is a string; raise `InputError` if it is anything else."""
    if not isinstance(text, str):
        raise InputError(
            f"text must be a string, not {type(text).__name__}",
            hint="decode bytes, and render messages to text, before counting",
            field="text",
        )
    return text
