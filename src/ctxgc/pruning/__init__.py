"""Pruning: the transcript of a coding agent, collected and written again so that the agent can go on."""

from ctxgc.pruning.backups import Backup, newest_backup, put_back, write_in_place
from ctxgc.pruning.proposal import Proposal, Row, configured, propose, store_name
from ctxgc.pruning.target import PRESETS, Target
from ctxgc.pruning.writing import written

__all__ = [
    "PRESETS",
    "Backup",
    "Proposal",
    "Row",
    "Target",
    "configured",
    "newest_backup",
    "propose",
    "put_back",
    "store_name",
    "write_in_place",
    "written",
]
