"""Show what the constants in the code of the price collector are good for, as a table for docs/lab.md.

python -m tools.code_constants --data DIR --set claude_code --every 4

They say how often something is checked, or where two kinds of results differ; the fitted constants are
ablated by `ctxgc lab ablate`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from unittest.mock import patch

from ctxgc._version import __version__
from ctxgc.cli.lab_fit import markdown_table
from ctxgc.collector import calls, liveness, price, reader, worth
from ctxgc.economics import price_sheet
from ctxgc.lab import Ablated, Ablation, Experiment, Measures, Trials
from ctxgc.lab.fit import What
from ctxgc.lab.fit_targets import Number, PresetTarget
from tools.lab_arguments import parser_of

NEVER = 1.01
TRIED: tuple[tuple[ModuleType, str, dict[What, Number]], ...] = (
    (price, "LEAST_REQUESTS", {"off": 0, "double": 4}),
    (liveness, "ELSEWHERE", {"off": NEVER, "half": 0.35}),
    (reader, "_PLAN_LIFE", {"off": 1, "double": 16}),
    (worth, "_RARE_WORD", {"off": 0, "double": 6}),
    (worth, "_PATH", {"off": 100, "double": 400}),
    (calls, "_PATHS_SHARE", {"off": NEVER, "half": 0.3}),
    (worth, "_MOST_PLACES", {"off": 1, "double": 12}),
)


def ablation(experiment: Experiment, judge: Callable[[], Measures], runs: int) -> Ablation:
    """Return the effect of other values; `judge` plays the runs with the constants as they are."""
    reached = judge()
    rows: list[Ablated] = []
    for module, name, values in TRIED:
        for what, value in values.items():
            print(f"{name} {value} ...", file=sys.stderr, flush=True)
            with patch.object(module, name, value):
                found = judge()
            difference = {key: found[key] - reached[key] for key in found}
            rows.append(
                Ablated(
                    constant=_title(name), what=what, values={_title(name): value},
                    reached=found, difference=difference,
                )
            )  # fmt: skip
    return Ablation(
        version=__version__,
        subject="default",
        source=experiment.source,
        regimes=("cost",),
        sheet=experiment.sheet,
        least_tokens=experiment.least_tokens,
        every=experiment.every,
        runs=runs,
        constants={_title(name): getattr(module, name) for module, name, _ in TRIED},
        reached=reached,
        rows=rows,
    )


def _title(name: str) -> str:
    return name.strip("_").lower()


def main(arguments: Sequence[str] | None = None) -> int:
    """Play the runs with each value, and print the table."""
    asked = parser_of("code_constants", __doc__).parse_args(arguments)
    experiment = Experiment(
        policies=(), data=asked.data, set_name=asked.set, every=asked.every, half="fit"
    )
    target, runs = PresetTarget("default"), experiment.all_runs()
    # One process: a constant changed here is not changed in others.
    with Trials(runs, price_sheet(experiment.sheet)) as trials:
        found = ablation(experiment, lambda: trials.judge(target, target.start()), len(runs))
    print(markdown_table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
