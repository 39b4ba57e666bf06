"""The pause of Python's own garbage collector."""

from __future__ import annotations

import gc
from contextlib import suppress

import pytest

from ctxgc.session.collection import cycles_paused


@pytest.mark.parametrize("was_on", [True, False])
def test_afterwards_it_is_as_it_was_even_when_something_failed(was_on: bool) -> None:
    before = gc.isenabled()
    (gc.enable if was_on else gc.disable)()
    try:
        with suppress(KeyError), cycles_paused():
            assert not gc.isenabled()
            raise KeyError
        assert gc.isenabled() is was_on
    finally:
        (gc.enable if before else gc.disable)()
