"""The same experiment on many machines: a Dask cluster. Needs the extra `ctxgc[scale]`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from ctxgc._version import __version__
from ctxgc.errors import InputError
from ctxgc.lab.experiment import Experiment
from ctxgc.lab.pool import AHEAD, RunOrder, in_run_order, play
from ctxgc.lab.results import RunResult
from ctxgc.lab.runs import Run
from ctxgc.lab.summary import Report

_LOCAL = "local"
PATIENCE_SECONDS = 30
_Played = tuple[int, list[RunResult]]


def run_on_dask(
    address: str, experiment: Experiment, done: Callable[[], None] | None = None, jobs: int = 1
) -> Report:
    """Play an experiment on a cluster and return the same report as `run_experiment`.

    Args:
        address: the scheduler's (`tcp://host:8786`); `local` starts a cluster on this machine.
        experiment: what to play; its files are read on this machine and sent run by run.
        done: called after each run.
        jobs: how many workers a `local` cluster has.

    Raises:
        InputError: Dask is not installed, no scheduler answers, or a worker has another ctxgc.
    """
    order = experiment.order()
    with _connected(address, jobs) as client:
        _check_versions(client)
        played = list(_played(client, order, experiment.runs(), done or (lambda: None)))
    return experiment.report(in_run_order(played))


def _played(
    client: Any, order: RunOrder, runs: Iterable[Run], done: Callable[[], None]
) -> Iterator[_Played]:
    numbered = enumerate(runs)
    sent = _dask().as_completed()
    room = AHEAD * max(1, sum(client.ncores().values()))
    for number, run in islice(numbered, room):
        sent.add(client.submit(_numbered, number, order, run, pure=False))
    for future in sent:
        yield future.result()
        done()
        for number, run in islice(numbered, 1):
            sent.add(client.submit(_numbered, number, order, run, pure=False))


def _numbered(number: int, order: RunOrder, run: Run) -> _Played:
    return number, play(order, run)


@contextmanager
def _connected(address: str, jobs: int) -> Iterator[Any]:
    dask = _dask()
    if address == _LOCAL:
        with (
            dask.LocalCluster(jobs, threads_per_worker=1, dashboard_address=None) as cluster,
            dask.Client(cluster) as client,
        ):
            yield client
        return
    try:
        client = dask.Client(address, timeout=PATIENCE_SECONDS)
    except (OSError, ValueError) as error:
        raise InputError(
            f"no Dask scheduler answers at {address!r}: {error}",
            hint="start one with `dask scheduler`, or use `local`",
            field="cluster",
        ) from None
    with client:
        yield client


def _dask() -> Any:
    """Return the module `distributed`, which has no types."""
    try:
        return importlib.import_module("distributed")
    except ImportError:
        raise InputError(
            "a cluster needs Dask", hint="pip install 'ctxgc[scale]'", field="cluster"
        ) from None


def _check_versions(client: Any) -> None:
    """Refuse workers with another version: they would judge by other rules."""
    found = set(client.run(_version).values())
    if found - {__version__}:
        raise InputError(
            f"workers have ctxgc {', '.join(sorted(found))}, this machine has {__version__}",
            hint="install the same version everywhere",
            field="cluster",
        )


def _version() -> str:
    return __version__
