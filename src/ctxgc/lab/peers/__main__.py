"""`python -m ctxgc.lab.peers install [PACKAGE ...]`: make the environments of the peers."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ctxgc.lab.peers.catalog import PACKAGES, install_all


def main(arguments: Sequence[str]) -> int:
    """Do what the arguments say; return the exit code."""
    unknown = [name for name in arguments[1:] if name not in PACKAGES]
    if arguments[:1] != ["install"] or unknown:
        sys.stderr.write(f"usage: install [{' | '.join(PACKAGES)}] ...\n")
        return 2
    return 1 if install_all(arguments[1:], sys.stderr.write) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
