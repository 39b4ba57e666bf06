"""What the seeds write that contradicts itself, cannot run or does harm; and what ours does instead.

Each fault belongs to an entry of its seed, whose tests prove that it is mended.
"""

from __future__ import annotations

from tests.seeds import Fault

FAULTS: tuple[Fault, ...] = (
    # -- S0
    Fault(
        "S0.score.recency",
        "Recency is 1 / (1 + seconds): after a minute it is next to nothing, so that an hour and a month count alike.",
        "As written in the profile `s0`; `default` halves with every 40 steps.",
    ),
    Fault(
        "S0.score.generation-bias",
        "The young get a bonus, so that what has outlived many collections is pruned sooner than new noise.",
        "As written in the profile `s0`; in `default` tenure counts for a segment.",
    ),
    Fault(
        "S0.segment.created-at",
        "Times are plain datetimes: local and UTC times get mixed, and subtracting them fails or lies.",
        "A time without a zone is refused.",
    ),
    Fault(
        "S0.segment.tags-default",
        "The model is mutable: whoever holds a segment can change a heap behind its back.",
        "A segment is frozen; lists that are given become tuples.",
    ),
    Fault(
        "S0.links.topic",
        "Shared paths, tags and topics are links between segments: one topic of 10,000 segments has 50 million of them.",
        "They are shared keys; each is opened once.",
    ),
    Fault(
        "S0.tools.prune-strategy-delete",
        "A call of a model deletes for good, without a question.",
        "Deleting needs `confirm: true`.",
    ),
    # -- S1
    Fault(
        "S1.engine.score-segment",
        'The text says "lower = more likely to prune", the formula and the steps say the opposite.',
        "`keep_score`, higher stays longer, in every profile; `prune_score` is the formula as written, and `s1` its mirror.",
    ),
    Fault(
        "S1.score.recency",
        "Recency grows without bound: a decision of last week is pruned before a fresh log.",
        "As written in `prune_score` and `s1`, which is not the default profile.",
    ),
    Fault(
        "S1.roots.pinned",
        "Pins are roots, yet nothing says that what a pin references stays.",
        "A pin is a root like any other: what it reaches stays.",
    ),
    Fault(
        "S1.plan.delete-segments",
        "A plan groups by stash and delete, and nothing says which segments to delete.",
        "All are stashed, unless a policy that the caller names asks for deletion.",
    ),
    Fault(
        "S1.acceptance.targets",
        "Plans must meet the target and never take a pin; both together can be impossible.",
        "A root stays, and `shortfall` says what is missing.",
    ),
    Fault(
        "S1.candidates.unreachable",
        "Only unreachable segments are candidates, so that a target can be missed while much that is cold stays.",
        "In `plan(heap)` the reachable follow while the target is unmet, as S0 has it.",
    ),
    # -- S2
    Fault(
        "S2.gc-budget.ephemeral-keeps-recent",
        "The phase for ephemeral entries ignores `preserve_recent_turns` and pins.",
        "Both hold in every phase.",
    ),
    Fault(
        "S2.gc-budget.stops-at-target",
        "Ephemeral turns are found again in phase 2 and counted twice.",
        "Nothing is listed twice.",
    ),
    Fault(
        "S2.gc-budget.reasons",
        "Ephemeral and preservable entries are removed by their label, which is not the key of a child.",
        "By their key.",
    ),
    Fault(
        "S2.tools.live",
        "Removing a tool schema from the budget takes nothing out of the request: tokens are counted as saved and still sent.",
        "`live_tools()` says which schemas to send; what left comes back when its tool is named.",
    ),
    Fault(
        "S2.summary.child",
        "The loop over a removal list reads `result`, which it is not given, to book a summary.",
        "The session books a summary when it applies the collection.",
    ),
    Fault(
        "S2.plugins.hybrid-middle",
        "gc_summarize and gc_hybrid make a removal list and never put it into the result.",
        "It is in the result.",
    ),
    Fault(
        "S2.removal.turn-keys",
        "`turn_N` is the place of a turn in a history that gets shorter: after a collection the same number means another turn.",
        "Messages are found by id; by number only where budget and history have the same turns.",
    ),
    Fault(
        "S2.summary.numbered",
        "The key of a summary is `gc_summary` here and `gc_summary_N` there.",
        "Numbered, and a number is never used again.",
    ),
    # -- S3
    Fault(
        "S3.truncate.oldest-removed",
        "Everything but the recent turns leaves, whatever the target.",
        "Only as much leaves as the target asks for.",
    ),
    Fault(
        "S3.hybrid.middle-summarized",
        "The middle has 10 turns here and 15 there.",
        "10 unless told otherwise.",
    ),
    Fault(
        "S3.options.summarizer",
        "A summarizer is a function, and required; a file or a profile, two of the ways to configure, cannot hold one.",
        "A name such as `openai:MODEL` will do; without one an extract stays, and the result says so.",
    ),
    Fault(
        "S3.config.max-turns-holds",
        "`max_turns` only triggers, and `preserve_recent_turns` may ask for more turns than it allows.",
        "The limit prevails over recent turns; what pins and roots hold above it is `GCResult.turns_over`.",
    ),
    Fault(
        "S3.config.watched-when-off",
        "Without `auto_trigger` nothing looks at the context any more, until the provider refuses it.",
        "It is watched all the same; what does not fit is an error that says that collecting is switched off.",
    ),
    Fault(
        "S3.custom.collect-four-arguments",
        "A plugin returns a history, and nothing checks it: a call may lose its result, a pin may be gone.",
        "A proposal that breaks a promise is refused, with the reason in the result; numbers are counted again.",
    ),
    # -- S4
    Fault(
        "S4.tree.adjusts-threshold",
        "While the context is too big the threshold is lowered, which keeps more.",
        "It rises.",
    ),
    Fault(
        "S4.flow.can-prune-safely",
        "It asks whether it can prune safely, and does not say what that means.",
        "Something can be pruned, and what must stay lies below the critical zone.",
    ),
    Fault(
        "S4.flow.recovery-possible",
        "It asks whether recovery is possible, and does not say what that means.",
        "A verified checkpoint exists whose minimal context fits the window.",
    ),
    Fault(
        "S4.triggers.milestone",
        "`tasks_completed % 5 == 0` is true at zero, and stays true between two tasks.",
        "True once, when the fifth task is done.",
    ),
    Fault(
        "S4.monitor.danger",
        "At the same size DANGER and WARNING follow CRITICAL with the next checks, and alerts are never armed again.",
        "One alert for each entry into a zone, armed again when it is left.",
    ),
    Fault(
        "S4.pruner.by-score",
        "Selection stops at the first item that does not fit.",
        "It is passed over, and smaller ones follow.",
    ),
    Fault(
        "S4.pruner.essentials-first",
        "The size of the essentials is not checked.",
        "If they do not fit, only the last resort is left; if that does not fit either, an error names it.",
    ),
    Fault(
        "S4.pruner.steps",
        "The categories, a dict, are walked over as if they were the list of their items.",
        "Every step takes what the one before it returns.",
    ),
    Fault(
        "S4.pruner.aggressive",
        "Aggressive pruning works on what is already pruned.",
        "It starts from the whole content.",
    ),
    Fault(
        "S4.aggressive.current-file",
        "Some keys are read without a default, and a context that lacks one raises KeyError.",
        "What is missing is no error.",
    ),
    Fault(
        "S4.aggressive.last-user-message",
        "The last message is called the last user message, whoever says it.",
        "It is the last one that the user says.",
    ),
    Fault(
        "S4.checkpoint.file-checksums",
        "Checksums are written, and nothing verifies them.",
        "A restore reports which files differ.",
    ),
    Fault(
        "S4.checkpoint.save",
        "The name of a checkpoint has colons in it, which some file systems refuse.",
        "Without colons; atomic, with a digest, never over an older one.",
    ),
)
