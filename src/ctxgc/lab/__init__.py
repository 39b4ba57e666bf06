"""The lab: recorded agent runs replayed through pruning policies, priced and judged without a model."""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.lab.cluster import conduct_on
    from ctxgc.lab.experiment import Experiment, conduct
    from ctxgc.lab.explanation import Departure, Money, RequestExplanation, explain
    from ctxgc.lab.fit import Ablated, Ablation, Trials, ablate, changes
    from ctxgc.lab.fit_targets import Reached, subject
    from ctxgc.lab.html import page
    from ctxgc.lab.markdown import document
    from ctxgc.lab.peers.catalog import PACKAGES, PEERS, install_all, is_ready
    from ctxgc.lab.policies import POLICIES, chosen, policy, run_called
    from ctxgc.lab.regimes import parse_regime
    from ctxgc.lab.residency import State
    from ctxgc.lab.results import Figure
    from ctxgc.lab.summary import PolicyRow, Report, is_usable
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "cluster": "conduct_on",
            "experiment": "Experiment conduct",
            "explanation": "Departure Money RequestExplanation explain",
            "fit": "Ablated Ablation Trials ablate changes",
            "fit_targets": "Reached subject",
            "html": "page",
            "markdown": "document",
            "peers.catalog": "PACKAGES PEERS install_all is_ready",
            "policies": "POLICIES chosen policy run_called",
            "regimes": "parse_regime",
            "residency": "State",
            "results": "Figure",
            "summary": "PolicyRow Report is_usable",
        },
    )
