"""The room as a whole: what it exports, what it imports, what it leaves alone."""

from __future__ import annotations

import subprocess
import sys

import pytest

import ctxgc.testing
from ctxgc.errors import CtxgcError
from ctxgc.testing import StrictServer

PROGRAM = """
import sys
from ctxgc.testing import *
heavy = {"starlette", "uvicorn", "openai", "anthropic", "tiktoken", "httpx2"}
judged = {"ctxgc.invariants", "ctxgc.wire", "ctxgc.core.segment", "ctxgc.strategies"}
print(sorted((heavy | judged) & set(sys.modules)))
"""


def test_importing_it_loads_nothing_heavy_and_nothing_that_it_judges() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, encoding="utf-8", check=True
    )
    assert done.stdout.strip() == "[]"


def test_every_public_name_has_a_docstring() -> None:
    missing = [name for name in ctxgc.testing.__all__ if not getattr(ctxgc.testing, name).__doc__]
    assert missing == []


def test_without_the_extra_a_server_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "ctxgc.testing.serve.app", raising=False)
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    with pytest.raises(CtxgcError, match="starlette") as error:
        StrictServer().start()
    assert error.value.hint == "pip install 'ctxgc[serve]'"
