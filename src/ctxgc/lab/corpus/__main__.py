"""Make the corpus again: `python -m ctxgc.lab.corpus`."""

from __future__ import annotations

from ctxgc.lab.corpus import FILE
from ctxgc.lab.corpus.plans import corpus_text, packed

if __name__ == "__main__":
    FILE.write_bytes(packed(corpus_text()))
