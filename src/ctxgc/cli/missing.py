"""What `ctxgc` does when the packages of its command line are not installed."""

from __future__ import annotations

import sys
from typing import NoReturn


def main(**_: object) -> NoReturn:
    """Say what to install, and fail."""
    print(
        "error: the command line needs click (next: pip install 'ctxgc[cli]')",
        file=sys.stderr,
    )
    sys.exit(1)
