"""The knobs of the engine."""

from __future__ import annotations

from typing import Any

import pytest

from ctxgc.core import EngineOptions
from ctxgc.errors import ConfigError
from tests.requirements import requirement

LIMITS = "target_percent/soft_limit_percent/hard_limit_percent"


@requirement("S0.full.hard-limit", "S0.incremental.batch")
def test_the_defaults_are_those_of_the_seed() -> None:
    options = EngineOptions()
    assert (options.hard_limit_percent, options.batch, options.step_every) == (90.0, 20, 1)


def test_a_share_of_the_window_is_whole_tokens_or_unknown() -> None:
    assert EngineOptions(context_limit=999).limit(70.0) == 699
    assert EngineOptions().limit(70.0) is None


def test_a_full_collection_never_lands_above_the_soft_limit() -> None:
    assert EngineOptions(soft_limit_percent=50.0).target_percent == 50.0
    assert EngineOptions(target_percent=40.0, soft_limit_percent=50.0).target_percent == 40.0


@pytest.mark.parametrize(
    ("options", "field", "hint"),
    [
        ({"batch": 0}, "batch", ""),
        ({"looks": 0}, "looks", ""),
        ({"step_every": 0}, "step_every", ""),
        ({"promote_after": 0}, "promote_after", ""),
        ({"context_limit": 0}, "context_limit", ""),
        ({"compress_ratio": 1.0}, "compress_ratio", ""),
        ({"compress_ratio": 0.0}, "compress_ratio", ""),
        ({"strong": ("path", "topics")}, "strong", "did you mean 'topic'?"),
        ({"strong": ("zzz",)}, "strong", "use one of: path, tag, topic"),
        ({"delete_policies": ("ephemral",)}, "delete_policies", "did you mean 'ephemeral'?"),
        ({"soft_limit_percent": 95.0}, LIMITS, "hard_limit_percent is at most 100"),
        ({"hard_limit_percent": 101.0}, LIMITS, "hard_limit_percent is at most 100"),
        ({"target_percent": 0.0}, LIMITS, "hard_limit_percent is at most 100"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused_by_the_name_of_its_field(
    options: dict[str, Any], field: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        EngineOptions(**options)
    assert (caught.value.details["field"], caught.value.hint) == (field, hint)
