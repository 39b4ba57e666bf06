"""An experiment: which runs, which policies and which regime; and the report on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Literal, NoReturn

import msgspec

from ctxgc._version import __version__
from ctxgc.economics import price_sheet
from ctxgc.errors import InputError
from ctxgc.lab.bits import check_zstd, has_zstd
from ctxgc.lab.policies import policy
from ctxgc.lab.pool import RunOrder, play_all
from ctxgc.lab.regimes import parse_regime
from ctxgc.lab.results import RunResult
from ctxgc.lab.runs import Half, Run, half_of, read_runs, run_files
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
    half: Half | Literal["both"] = "both"
    most_runs: int | None = None
    timing: bool = False
    survival: bool = False
    bits_every: int | None = None

    @property
    def source(self) -> str:
        """What is played, by file names only, so that it is the same on every machine."""
        every = "" if self.every == 1 else f", one run in {self.every}"
        half = "" if self.half == "both" else f", the half to {self.half}"
        return f"{self._files}{every}{half}"

    @property
    def _files(self) -> str:
        if self.data is None:
            return "the corpus of ctxgc (synthetic)"
        files = run_files(self.data, self.set_name)
        if len(files) > _MOST_NAMES:
            return f"{len(files)} files, {files[0].name} to {files[-1].name}"
        return ", ".join(file.name for file in files)

    def runs(self) -> Iterator[Run]:
        """Yield the runs, read one by one: one in `every`, those of the `half`, at most `most_runs`."""
        chosen = islice(self._all_runs(), None, None, self.every)
        halved = (run for run in chosen if self.half in ("both", half_of(run.group)))
        return islice(halved, self.most_runs)

    def other_half(self) -> Experiment | None:
        """Return the same with the half that this one leaves out; None if it leaves out none."""
        if self.half == "both":
            return None
        return msgspec.structs.replace(self, half="judge" if self.half == "fit" else "fit")

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
            hint="lower --least-tokens" + ("" if self.half == "both" else ", or use --half both"),
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
