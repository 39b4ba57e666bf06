"""`python -m ctxgc` is the same as `ctxgc`."""

from __future__ import annotations

from ctxgc.cli import run

if __name__ == "__main__":
    run()
