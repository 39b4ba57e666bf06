"""The lab: recorded agent runs replayed through pruning policies, priced and judged without a model.

`runs` reads recorded conversations (`corpus` is the synthetic one that ships), `facts` and `needs` find
what each answer used from further back. `replay` plays one run through one policy (`policies`,
`policies_ctxgc`, `policies_restated`, `oracles`, `peers`), prices every request, follows what is still in
the view (`view`, `residency`), what the answer costs to write down with it (`bits`), and what became of
everything that came in (`evidence`, `survival`). `experiment` plays many runs, in a `pool` of processes
or on Dask (`dask_runner`), and `summary` makes the report that `markdown` and `html` write. `fit` and
`fit_targets` search and ablate the constants that ship; `explanation` shows one decision. `gather` has
scripted sessions with a known answer, and says whether a view still holds what it needs. `judge` asks a
language model (`judge_model`), where one is wanted.

    from ctxgc.lab import Experiment, run_experiment

    report = run_experiment(Experiment(policies=("ctxgc", "never")))
"""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.lab.bits import AnswerBits
    from ctxgc.lab.corpus import demo_runs
    from ctxgc.lab.dask_runner import run_on_dask
    from ctxgc.lab.experiment import Experiment, run_experiment
    from ctxgc.lab.explanation import Departure, Money, RequestExplanation, explain
    from ctxgc.lab.fit import (
        Ablated, Ablation, Trials, ablate, fit_constants, judge_constants, variations,
    )
    from ctxgc.lab.fit_targets import FIT_TARGETS, Measures, fit_target
    from ctxgc.lab.gather.families import FAMILIES
    from ctxgc.lab.gather.judge import TaskResult, play_task
    from ctxgc.lab.gather.suite import GatherReport, GatherRow, GatherSuite, run_gather
    from ctxgc.lab.gather.tables import GatherTable, gather_markdown, gather_tables, headline
    from ctxgc.lab.gather.tasks import GatherTask, TaskPlan, WINDOWS, make_task, plans
    from ctxgc.lab.gather.tools import TOOLS
    from ctxgc.lab.html import html_report
    from ctxgc.lab.judge import (
        JUDGE_COLUMNS, JudgeReport, JudgeSettings, judge_cells, judge_headline, judge_markdown, run_judge,
    )
    from ctxgc.lab.judge_model import JudgeMemory, JudgeModel, open_model
    from ctxgc.lab.markdown import (
        HALF_COLUMNS, SURVIVAL_COLUMNS, half_cells, markdown_report, survival_cells,
    )
    from ctxgc.lab.peers.catalog import PACKAGES, PEERS, install_all, is_ready
    from ctxgc.lab.policies import POLICIES, Player, Policy, PolicyTask, choose_policies, policy
    from ctxgc.lab.regimes import Regime, parse_regime
    from ctxgc.lab.replay import replay_run
    from ctxgc.lab.residency import State
    from ctxgc.lab.results import Figure, RunResult
    from ctxgc.lab.runs import Run, find_run, half_of, read_runs
    from ctxgc.lab.summary import CopiedBits, HalfReport, PolicyRow, Report, is_usable
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "bits": "AnswerBits",
            "corpus": "demo_runs",
            "dask_runner": "run_on_dask",
            "experiment": "Experiment run_experiment",
            "explanation": "Departure Money RequestExplanation explain",
            "fit": "Ablated Ablation Trials ablate fit_constants judge_constants variations",
            "fit_targets": "FIT_TARGETS Measures fit_target",
            "gather.families": "FAMILIES",
            "gather.judge": "TaskResult play_task",
            "gather.suite": "GatherReport GatherRow GatherSuite run_gather",
            "gather.tables": "GatherTable gather_markdown gather_tables headline",
            "gather.tasks": "GatherTask TaskPlan WINDOWS make_task plans",
            "gather.tools": "TOOLS",
            "html": "html_report",
            "judge":
                "JUDGE_COLUMNS JudgeReport JudgeSettings judge_cells judge_headline judge_markdown run_judge",
            "judge_model": "JudgeMemory JudgeModel open_model",
            "markdown": "HALF_COLUMNS SURVIVAL_COLUMNS half_cells markdown_report survival_cells",
            "peers.catalog": "PACKAGES PEERS install_all is_ready",
            "policies": "POLICIES Player Policy PolicyTask choose_policies policy",
            "regimes": "Regime parse_regime",
            "replay": "replay_run",
            "residency": "State",
            "results": "Figure RunResult",
            "runs": "Run find_run half_of read_runs",
            "summary": "CopiedBits HalfReport PolicyRow Report is_usable",
        },
    )
