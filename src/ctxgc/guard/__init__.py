"""The guard: how full the context is, and what is done about it in time."""

from ctxgc.guard.checkpoint import Checkpoint
from ctxgc.guard.checksums import FileDifference, checksum_files, compare_files
from ctxgc.guard.content import ContentItem, item_from_segment
from ctxgc.guard.focus import Category, Focus
from ctxgc.guard.monitor import Alert, ContextMonitor, Reading
from ctxgc.guard.priorities import Priority, PriorityMatrix, PriorityRule
from ctxgc.guard.pruner import ContextPruner, PruneResult
from ctxgc.guard.recoverable import FixedPart, Outlook, Recoverable
from ctxgc.guard.recovery import Recovery
from ctxgc.guard.retention import CheckpointInfo, RetentionPolicy
from ctxgc.guard.shelf import CheckpointShelf
from ctxgc.guard.states import State
from ctxgc.guard.triggers import (
    CheckpointTriggers,
    ContextMetrics,
    Progress,
    should_create_checkpoint,
)
from ctxgc.guard.walk import RecoveryReport
from ctxgc.guard.zones import Zone, next_zone, zone_of

__all__ = [
    "Alert",
    "Category",
    "Checkpoint",
    "CheckpointInfo",
    "CheckpointShelf",
    "CheckpointTriggers",
    "ContentItem",
    "ContextMetrics",
    "ContextMonitor",
    "ContextPruner",
    "FileDifference",
    "FixedPart",
    "Focus",
    "Outlook",
    "Priority",
    "PriorityMatrix",
    "PriorityRule",
    "Progress",
    "PruneResult",
    "Reading",
    "Recoverable",
    "Recovery",
    "RecoveryReport",
    "RetentionPolicy",
    "State",
    "Zone",
    "checksum_files",
    "compare_files",
    "item_from_segment",
    "next_zone",
    "should_create_checkpoint",
    "zone_of",
]
