"""The gate `python -m tools.ccusage`: the costs of sessions side by side with those of ccusage."""

from __future__ import annotations

import os
import sys

import pytest

from tools.agents_env import MissingError, ccusage, environment, skip

TEST = "tests/insight/test_ccusage.py"


def main() -> int:
    """Install ccusage, and run the test that compares with it."""
    try:
        program = ccusage()
    except MissingError as error:
        return skip("ccusage", error)
    os.environ.update(environment(), CTXGC_CCUSAGE=str(program))
    return int(pytest.main(["-q", "-p", "no:cacheprovider", TEST]))


if __name__ == "__main__":
    sys.exit(main())
