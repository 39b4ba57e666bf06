"""The ablation of the constants in the code: each is changed alone, and is as it was afterwards."""

from __future__ import annotations

from ctxgc.lab import Experiment, Measures
from tools.code_constants import TRIED, ablation


def values() -> Measures:
    return {name: float(getattr(module, name)) for module, name, _ in TRIED}


def test_each_constant_is_changed_alone_and_put_back() -> None:
    before = values()
    found = ablation(Experiment(policies=()), values, 1)
    assert values() == before == found.reached
    changed = [{key for key, moved in row.difference.items() if moved} for row in found.rows]
    assert changed == [{name} for _, name, tried in TRIED for _ in tried]
    assert [value for row in found.rows for value in row.values.values()] == [
        value for *_, tried in TRIED for value in tried.values()
    ]
