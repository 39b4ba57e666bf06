"""S4 "Diagram", block 1: the flow of a call; every arrow of it is one of ours.

Fault of the seed: a minimal context that is still too large, and a checkpoint that cannot be pruned enough, have no
arrow; ours go on to the overflow and to the fatal error.
"""

import re

from ctxgc.guard import State, chart

# -- the block

CHART = """
flowchart TD
    Start([LLM Call Requested]) --> CheckSize{Context Size<br/>Check}

    CheckSize --> Size{Current Size<br/>vs Limit?}

    Size -->|< 70%| SafeZone[Safe Zone:<br/>No Action Needed]
    Size -->|70-85%| WarningZone[Warning Zone:<br/>Monitor Closely]
    Size -->|85-95%| DangerZone[Danger Zone:<br/>Prepare Pruning]
    Size -->|≥ 95%| CriticalZone[Critical Zone:<br/>Immediate Action]

    SafeZone --> Execute[Execute LLM Call]

    WarningZone --> LogWarning[Log Warning]
    LogWarning --> Execute

    DangerZone --> CreateCheckpoint[Create Checkpoint]
    CreateCheckpoint --> PlanPruning[Plan Pruning Strategy]
    PlanPruning --> Execute

    CriticalZone --> EmergencyCheckpoint[Emergency Checkpoint]
    EmergencyCheckpoint --> MustPrune{Can Prune<br/>Safely?}

    MustPrune -->|Yes| PruneNow[Execute Pruning<br/>Immediately]
    PruneNow --> ValidatePrune{Pruning<br/>Successful?}

    ValidatePrune -->|Yes| Execute
    ValidatePrune -->|No| FallbackMinimal[Fallback to<br/>Minimal Context]

    FallbackMinimal --> Execute

    MustPrune -->|No| Overflow[Context Overflow<br/>Error]

    Overflow --> RecoveryDecision{Recovery<br/>Possible?}

    RecoveryDecision -->|Yes| LoadCheckpoint[Load Last<br/>Checkpoint]
    LoadCheckpoint --> AggressivePrune[Aggressive Pruning]
    AggressivePrune --> Resume[Resume from<br/>Checkpoint]

    RecoveryDecision -->|No| Fatal[Fatal Error:<br/>Stop System]

    Execute --> Success([Call Complete])
    Resume --> Success
    Fatal --> End([System Stopped])

    style SafeZone fill:#c8e6c9
    style WarningZone fill:#fff9c4
    style DangerZone fill:#ffcc80
    style CriticalZone fill:#ffcdd2
    style Fatal fill:#ef5350
    style Success fill:#e1f5ff
"""

# -- ours: the same states under names, and the same arrows

NAMES = {
    "Start": "CALL_REQUESTED", "Size": "COMPARE_SIZE", "MustPrune": "CAN_PRUNE_SAFELY",
    "ValidatePrune": "PRUNING_SUCCESSFUL", "RecoveryDecision": "RECOVERY_POSSIBLE",
    "Success": "CALL_COMPLETE", "End": "STOPPED",
}
ARROW = re.compile(r"^ *(\w+)[^\n]* -->(?:\|[^|]*\|)? (\w+)", re.MULTILINE)


def name(box):
    return NAMES.get(box) or re.sub(r"(?<=[a-z])(?=[A-Z])", "_", box).upper()


def arrows(text):
    return {(name(source), name(target)) for source, target in ARROW.findall(text)}


theirs = arrows(CHART)
ours = set(re.findall(r"^ *([A-Z_]+) -\.?->(?:\|\w+\|)? ([A-Z_]+)", chart(), re.MULTILINE))
assert len(theirs) == 28
assert {box for arrow in theirs for box in arrow} == {state.name for state in State}
assert theirs - ours == set()
assert ours - theirs == {
    ("FALLBACK_MINIMAL", "OVERFLOW"), ("LOAD_CHECKPOINT", "FATAL"), ("AGGRESSIVE_PRUNE", "FATAL"),
    ("RECOVERY_POSSIBLE", "EXECUTE"),
}
