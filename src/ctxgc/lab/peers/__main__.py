"""`python -m ctxgc.lab.peers install [PACKAGE ...]`: make the environments of the peers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from ctxgc.errors import PeerError
from ctxgc.lab.peers.catalog import PACKAGES
from ctxgc.lab.peers.environments import install


def install_all(names: Sequence[str], tell: Callable[[str], object]) -> list[str]:
    """Install these packages, or all; return what failed, each with its reason."""
    failed = []
    for name in names or list(PACKAGES):
        try:
            install(PACKAGES[name])
            tell(f"{PACKAGES[name].requirement}: ready\n")
        except PeerError as error:
            failed.append(f"{name}: {error.message}")
            tell(f"{failed[-1]}\n")
    return failed


def main(arguments: Sequence[str]) -> int:
    """Do what the arguments say; return the exit code."""
    unknown = [name for name in arguments[1:] if name not in PACKAGES]
    if arguments[:1] != ["install"] or unknown:
        sys.stderr.write(f"usage: install [{' | '.join(PACKAGES)}] ...\n")
        return 2
    return 1 if install_all(arguments[1:], sys.stderr.write) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
