"""Presets: constants as data."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest
from msgspec.structs import replace

from ctxgc.collector import (
    Coefficients,
    coefficients,
    custom,
    preset,
)
from ctxgc.collector.calls import Kind
from ctxgc.drawing import readable_json
from ctxgc.errors import ConfigError


def test_every_shipped_preset_has_a_share_for_every_reason() -> None:
    for name, how in coefficients().presets.items():
        assert preset(name) is how
        reasons = {"edited", "elsewhere", "idle", "gathered"}
        assert how.shares.keys() == {*get_args(Kind), *reasons} - {"view", "other", "todo"}
        assert 0 < how.guard <= 0.05


def test_an_unknown_preset_is_named_with_those_that_there_are() -> None:
    with pytest.raises(ConfigError, match="there is no preset 'frugal'") as raised:
        preset("frugal")
    assert "default" in raised.value.hint
    assert raised.value.details["field"] == "preset"


def test_constants_of_ones_own_are_read_like_the_shipped_ones() -> None:
    how = preset("default")
    assert custom(msgspec.to_builtins(how)) == how


@pytest.mark.parametrize("change", [{"hold": "long"}, {"unknown": 1}])
def test_wrong_constants_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="constants of gc_mark_sweep"):
        custom({**msgspec.to_builtins(preset("default")), **change})


def test_the_file_reads_back_as_the_same_constants() -> None:
    found = coefficients()
    assert msgspec.json.decode(readable_json(found), type=Coefficients) == found


def test_shares_of_a_kind_that_no_result_is_are_refused() -> None:
    constants = msgspec.to_builtins(preset("default"))
    constants["shares"]["bogus"] = [1, 1]
    with pytest.raises(ConfigError, match="`shares` has bogus"):
        custom(constants)


def test_constants_of_an_older_version_are_read_without_what_is_gone() -> None:
    how = preset("careful")
    old = msgspec.to_builtins(how)
    del old["work_hold"], old["shares"]["gathered"]
    old |= {"company": 0.2, "shares": {**old["shares"], "other": [0.8, 0.1]}}
    usual = preset("default")
    shares = {**how.shares, "gathered": usual.shares["gathered"]}
    assert custom(old) == replace(how, work_hold=usual.work_hold, shares=shares)
