"""The registry of policies."""

from __future__ import annotations

import pytest

from ctxgc.errors import ConfigError
from ctxgc.lab import POLICIES, choose_policies, policy


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_has_the_name_it_is_found_by(name: str) -> None:
    assert policy(name).name == name


def test_words_choose_a_policy_a_kind_or_all_each_once() -> None:
    ours = [name for name in POLICIES if policy(name).kind == "ours"]
    assert choose_policies(["ctxgc-lean", "ours", "never"]) == [
        "ctxgc-lean",
        *(n for n in ours if n != "ctxgc-lean"),
        "never",
    ]
    assert choose_policies(["all"]) == list(POLICIES)


@pytest.mark.parametrize("choose", [policy, lambda name: choose_policies([name])])
def test_an_unknown_name_gets_the_nearest_as_a_hint(choose: object) -> None:
    with pytest.raises(ConfigError, match='did you mean "ctxgc-lean"'):
        choose("ctxgc-lea")  # type: ignore[operator]
