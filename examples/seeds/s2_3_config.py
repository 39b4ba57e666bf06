"""S2 3 "Add Target Threshold", block 3: when to collect, and where to land."""

import os
from dataclasses import dataclass, field, fields
from typing import Any, Dict, List, Optional

import ctxgc

# -- the block


@dataclass
class GCConfig:
    # Existing trigger settings
    threshold_percent: float = 80.0  # When to trigger GC

    # NEW: Target after GC
    target_percent: float = field(
        default_factory=lambda: float(os.getenv('JAATO_GC_TARGET', '60.0'))
    )
    """Target context usage after GC. GC will try to reach this level."""

    # NEW: Pressure threshold for touching PRESERVABLE content
    pressure_percent: float = field(
        default_factory=lambda: float(os.getenv('JAATO_GC_PRESSURE', '90.0'))
    )
    """When usage exceeds this, PRESERVABLE content may be collected."""

    # Existing settings...
    max_turns: Optional[int] = None
    auto_trigger: bool = True
    check_before_send: bool = True
    preserve_recent_turns: int = 5
    pinned_turn_indices: List[int] = field(default_factory=list)
    plugin_config: Dict[str, Any] = field(default_factory=dict)


# -- ours: the same keys, defaults and variables; it cannot be changed, so the list is a tuple in it

for environment, given in (
    ({}, {}),
    ({"JAATO_GC_TARGET": "50", "JAATO_GC_PRESSURE": "95"}, {}),
    ({"JAATO_GC_TARGET": "50"}, {"target_percent": 40.0, "pinned_turn_indices": [1], "max_turns": 9}),
):
    os.environ.update(environment)
    theirs, ours = GCConfig(**given), ctxgc.GCConfig(**given)
    for name in environment:
        del os.environ[name]
    for key in (each.name for each in fields(theirs)):
        value = getattr(theirs, key)
        assert getattr(ours, key) == (tuple(value) if isinstance(value, list) else value), key

os.environ["JAATO_GC_THRESHOLD"] = "75"  # the third variable of the seed's table
assert ctxgc.GCConfig().threshold_percent == 75.0
