"""A Dask cluster: the same report as one machine gives."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from ctxgc.errors import InputError
from ctxgc.lab import Experiment, dask_runner, run_experiment, run_on_dask
from tests.lab.builders import generated_run


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    file = tmp_path / "runs.jsonl"
    runs = [generated_run(number) for number in range(4)]
    lines = [
        json.dumps({"id": run.id, "group": run.group, "messages": run.messages}) for run in runs
    ]
    file.write_text("\n".join(lines), "utf-8")
    return Experiment(policies=("never", "ctxgc"), data=file, regime="window:50%", least_tokens=0)


@pytest.mark.filterwarnings("ignore:Creating scratch directories")  # where the disk is slow
def test_a_cluster_gives_the_report_of_one_machine(experiment: Experiment) -> None:
    pytest.importorskip("distributed", reason="the extra ctxgc[scale] is not installed")
    told: list[int] = []
    found = run_on_dask("local", experiment, lambda: told.append(1), jobs=2)
    assert found == run_experiment(experiment)
    assert len(told) == 4


def test_a_scheduler_that_does_not_answer_is_reported(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed", reason="the extra ctxgc[scale] is not installed")
    monkeypatch.setattr(dask_runner, "PATIENCE_SECONDS", 0.2)
    with pytest.raises(InputError, match="no Dask scheduler answers"):
        run_on_dask("tcp://127.0.0.1:1", experiment)


def test_workers_with_another_version_are_refused() -> None:
    class Client:
        def run(self, asked: object) -> dict[str, str]:
            return {"tcp://a": "0.0.1"}

    with pytest.raises(InputError, match=r"workers have ctxgc 0\.0\.1"):
        dask_runner._check_versions(Client())


def test_without_dask_the_extra_is_named(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"ctxgc\[scale\]"):
        run_on_dask("local", experiment)
