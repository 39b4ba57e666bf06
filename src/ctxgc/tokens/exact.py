"""Counting with the model's own tokenizer."""

from __future__ import annotations

from ctxgc.tokens.counter import require_text
from ctxgc.tokens.pieces import mended, pieces
from ctxgc.tokens.vocabulary import load, vocabulary


class ExactCounter:
    """Counts in `o200k_base` or `cl100k_base`, with no network and no cache directory.

    The vocabulary is loaded by the first count in the process. Text that looks like a special token
    (`<|endoftext|>`) counts as the ordinary text that it is; a lone surrogate counts as U+FFFD. A run of more
    than 8,192 characters without a break can count a token or so too many (see `ctxgc.tokens.pieces`).
    """

    exact = True

    def __init__(self, encoding: str = "o200k_base") -> None:
        vocabulary(encoding)
        self.name = encoding

    def __repr__(self) -> str:
        return f"ExactCounter({self.name!r})"

    def count(self, text: str) -> int:
        """Return the number of tokens; `VocabularyError` if the shipped vocabulary is damaged."""
        if not require_text(text):
            return 0
        encode = load(self.name).encode_ordinary
        return sum(len(encode(piece)) for piece in pieces(mended(text)))
