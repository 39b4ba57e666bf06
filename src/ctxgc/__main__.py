"""`python -m ctxgc` is the same as `ctxgc`."""

from ctxgc.cli.start import run

if __name__ == "__main__":
    run()
