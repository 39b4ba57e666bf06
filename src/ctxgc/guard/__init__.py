"""The guard: how full the context is, and what is done about it in time (S4).

`monitor` knows the zones and sends one alert for each entry, notices when what leaves comes back at once, and
says when a checkpoint is due; `checkpoint` is one, `checkpoint_store` keeps those of a session. `pruner`
prunes any context as S4 has it: `content` reads it, the collector's priorities rank it. `recovery` is S4's
first chart as a state machine: it makes a context fit before a call and after a refusal.

A session drives all of it; other rooms use checkpoints, zones and metrics.
"""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.collector import Category, Focus, Priority
    from ctxgc.config import PriorityMatrix, PriorityRule
    from ctxgc.guard.checkpoint import Checkpoint, FileDifference, checksum_files, compare_files
    from ctxgc.guard.checkpoint_store import CheckpointInfo, CheckpointStore, RetentionPolicy
    from ctxgc.guard.content import ContentItem
    from ctxgc.guard.monitor import (
        Alert, CheckpointTriggers, ContextMetrics, ContextMonitor, Progress, Reading, Thrash,
        ThrashBreaker, TriggersSeen, Zone, next_zone, should_create_checkpoint, zone_of,
    )
    from ctxgc.guard.pruner import ContextPruner, PruneResult, ScoredContent, aggressive_prune
    from ctxgc.guard.recovery import (
        FixedPart, Outlook, Recoverable, Recovery, RecoveryReport, State, chart, window_after,
    )
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "checkpoint": "Checkpoint FileDifference checksum_files compare_files",
            "checkpoint_store": "CheckpointInfo CheckpointStore RetentionPolicy",
            "monitor":
                "Alert CheckpointTriggers ContextMetrics ContextMonitor Progress Reading Thrash "
                "ThrashBreaker TriggersSeen Zone next_zone should_create_checkpoint zone_of",
            "content": "ContentItem",
            "ctxgc.collector": "Category Focus Priority",
            "ctxgc.config": "PriorityMatrix PriorityRule",
            "pruner": "ContextPruner PruneResult ScoredContent aggressive_prune",
            "recovery":
                "FixedPart Outlook Recoverable Recovery RecoveryReport State chart window_after",
        },
    )
