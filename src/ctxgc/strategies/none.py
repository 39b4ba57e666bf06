"""gc_none: the collector that never collects, the baseline of every comparison."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ctxgc.collector import CollectionRun, GCTriggerReason
from ctxgc.config import GCConfig
from ctxgc.strategies.builtin import BuiltinStrategy


class NoneStrategy(BuiltinStrategy):
    """Keeps everything; a collection that is asked for reports its shortfall."""

    name: ClassVar[str] = "gc_none"

    def should_collect(
        self,
        context_usage: Mapping[str, Any],  # noqa: ARG002 - it never asks
        config: GCConfig,  # noqa: ARG002
    ) -> tuple[bool, GCTriggerReason | None]:
        """Never."""
        return False, None

    def shrink(self, run: CollectionRun) -> None:
        """Do nothing."""
