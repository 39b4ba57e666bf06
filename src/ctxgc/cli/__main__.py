"""`python -m ctxgc.cli` is the same as `ctxgc`."""

from __future__ import annotations

from ctxgc.cli.start import run

if __name__ == "__main__":
    run()
