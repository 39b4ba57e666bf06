"""The constants of a window collection: data, checked when they come in, and in force when given."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from ctxgc.collector import (
    WindowConstants,
    WindowFile,
    window_constants,
    window_file,
)
from ctxgc.drawing import readable_json
from ctxgc.errors import ConfigError
from ctxgc.strategies.mark_sweep import MarkSweepStrategy
from tests.strategies.build import played, rows, step, tool_texts

SHIPPED = window_constants()


def test_the_shipped_file_says_where_its_constants_come_from() -> None:
    assert window_file().provenance.keys() >= {"runs", "how", "check"}
    assert window_file().constants is SHIPPED


def test_the_file_reads_back_as_the_same_constants() -> None:
    assert msgspec.json.decode(readable_json(window_file()), type=WindowFile) == window_file()


@pytest.mark.parametrize(
    "change",
    [{"slow": "very"}, {"slow": -1}, {"keep_whole": 1.5}, {"rare_word": 0.5}, {"unknown": 1}],
)
def test_wrong_constants_are_refused_when_the_options_come_in(change: dict[str, object]) -> None:
    given = {**msgspec.to_builtins(SHIPPED), **change}
    with pytest.raises(ConfigError, match="window_constants") as raised:
        MarkSweepStrategy().initialize({"window_constants": given})
    assert raised.value.details["key"] == "plugin_config"


def test_a_constant_that_is_missing_is_named() -> None:
    given = msgspec.to_builtins(SHIPPED)
    del given["slow"]
    with pytest.raises(ConfigError, match='lacks "slow"'):
        MarkSweepStrategy().initialize({"window_constants": given})


def texts_with(how: WindowConstants | None) -> list[str]:
    steps = [step(n, rows(f"x{n} lease_{n}0 src/p{n}.py")) for n in range(8)]
    options = {} if how is None else {"window_constants": msgspec.to_builtins(how)}
    return tool_texts(played(10_600, *steps, plugin_config=options))


def test_the_shipped_constants_given_again_change_nothing() -> None:
    assert texts_with(SHIPPED) == texts_with(None)


def test_given_constants_are_in_force() -> None:
    """No line is worth keeping at this rate: of stubs only the first line and names stay."""
    kept = texts_with(replace(SHIPPED, least_rate=1e9))
    assert sum(map(len, kept)) < sum(map(len, texts_with(SHIPPED)))
