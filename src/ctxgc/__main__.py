"""`python -m ctxgc` is the same as `ctxgc`."""

from ctxgc.cli import main

if __name__ == "__main__":
    main(prog_name="ctxgc")
