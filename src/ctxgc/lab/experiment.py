"""An experiment: which runs, which policies and which regime; and the report on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NoReturn

import msgspec

from ctxgc._version import __version__
from ctxgc.economics import price_sheet
from ctxgc.errors import InputError
from ctxgc.lab.bits import check_zstd, has_zstd
from ctxgc.lab.policies import policy
from ctxgc.lab.pool import RunOrder, play_all
from ctxgc.lab.regimes import parse_regime
from ctxgc.lab.results import RunResult
from ctxgc.lab.runs import Run, read_runs, run_files
from ctxgc.lab.summary import Report, report

_LEAST_TOKENS = 8_000
_MOST_NAMES = 4


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """What to play; without `data` it is the corpus that ships with ctxgc."""

    policies: tuple[str, ...]
    data: Path | None = None
    set_name: str = ""
    regime: str = "cost"
    sheet: str = "anthropic-5m"
    least_tokens: int = _LEAST_TOKENS
    every: int = 1
    most_runs: int | None = None
    timing: bool = False
    survival: bool = False
    bits_every: int | None = None

    @property
    def source(self) -> str:
        """What is played, by file names only, so that it is the same on every machine."""
        return self._files if self.every == 1 else f"{self._files}, one run in {self.every}"

    @property
    def _files(self) -> str:
        if self.data is None:
            return "the corpus of ctxgc (synthetic)"
        files = run_files(self.data, self.set_name)
        if len(files) > _MOST_NAMES:
            return f"{len(files)} files, {files[0].name} to {files[-1].name}"
        return ", ".join(file.name for file in files)

    def runs(self) -> Iterator[Run]:
        """Yield the runs, read one by one: one in `every`, at most `most_runs`."""
        return islice(islice(self._all_runs(), None, None, self.every), self.most_runs)

    def all_runs(self) -> list[Run]:
        """Return the runs.

        Raises:
            InputError: there are none.
        """
        return list(self.runs()) or self._refuse()

    def order(self) -> RunOrder:
        """Return what to do with each run.

        Raises:
            ConfigError: a policy, the regime or the price sheet does not exist.
            InputError: copied bits are asked for and cannot be measured here.
        """
        for name in self.policies:
            policy(name)
        return RunOrder(
            policies=tuple(dict.fromkeys(self.policies)),
            regime=parse_regime(self.regime),
            sheet=price_sheet(self.sheet),
            timing=self.timing,
            survival=self.survival,
            bits_every=self._bits_every(),
        )

    def _bits_every(self) -> int:
        """Return every which step is measured; each one unless asked otherwise, where there is zstd."""
        if self.bits_every is None:
            return int(has_zstd())
        if self.bits_every:
            check_zstd()
        return self.bits_every

    def report(self, results: Sequence[RunResult]) -> Report:
        """Return the report on the results of this experiment.

        Raises:
            InputError: there are none.
        """
        if not results:
            self._refuse()
        order = self.order()
        return report(
            [policy(name) for name in order.policies],
            results,
            version=__version__,
            source=self.source,
            regime=order.regime.name,
            sheet=order.sheet,
            least_tokens=self.least_tokens,
            bits_every=order.bits_every,
        )

    def _refuse(self) -> NoReturn:
        raise InputError(
            f"no run of {self.least_tokens} tokens in {self.source}",
            hint="lower --least-tokens",
            field="least_tokens",
        )

    def _all_runs(self) -> Iterator[Run]:
        if self.data is not None:
            return read_runs(self.data, self.least_tokens, self.set_name)
        from ctxgc.lab.corpus import demo_runs  # noqa: PLC0415

        return iter(demo_runs(self.least_tokens))


def run_experiment(
    experiment: Experiment, jobs: int = 1, done: Callable[[], None] | None = None
) -> Report:
    """Play an experiment on this machine and return its report."""
    return experiment.report(play_all(experiment.order(), experiment.runs(), jobs, done))
