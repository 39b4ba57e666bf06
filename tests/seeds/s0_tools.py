"""S0: GC-inspired heuristic pruning: the MCP tools and the platform behind them."""

from __future__ import annotations

from tests.seeds import Requirement, section

ENTRIES: tuple[Requirement, ...] = (
    *section(
        "S0.tools",
        "7.1 Tool overview",
        {
            "analyze": "`context_gc_analyze` reports usage and candidates.",
            "analyze-max-candidates": "`max_candidates` bounds the list.",
            "analyze-include-scores": "`include_scores` decides whether scores are shown.",
            "analyze-dry-run": "`dry_run` changes nothing.",
            "analyze-usage": "Usage names current tokens, soft limit and hard limit.",
            "analyze-candidates": "A candidate carries id, type, score and tokens.",
            "analyze-reason": "A candidate carries its reason in words.",
            "prune": "`context_gc_prune` prunes or stashes the segments it is given.",
            "prune-strategy-delete": "Strategy `delete` deletes.",
            "prune-strategy-stash": "Strategy `stash` stashes.",
            "prune-strategy-auto": "Strategy `auto` chooses per segment.",
            "prune-report": "The answer says what was deleted and what was stashed.",
            "prune-savings": "The answer estimates the tokens saved.",
            "pin": "`context_gc_pin` pins segments and adds them to the roots.",
            "unpin": "`context_gc_unpin` unpins segments and takes them from the roots.",
            "configure-limits": "`context_gc_configure` sets the soft and hard token limits.",
            "configure-windows": "`context_gc_configure` sets the recency windows.",
            "configure-batch": "`context_gc_configure` sets the batch size per step.",
        },
        issue=5,
        code="mcp/tools.py",
        differs={
            "prune": "A plan or words may be given instead of ids: agents lose track of ids.",
            "prune-strategy-delete": "Needs `confirm: true`, because it is for good.",
        },
    ),
    *section(
        "S0.behavior",
        "7.2 Tool behavior principles",
        {
            "explains": "Every suggestion says why.",
            "before-after": "Every change reports usage before and after.",
            "analysis-only": "The agent can ask for analysis without a change.",
            "approve-specific": "The agent can approve specific segments.",
            "pin-protects": "The agent can protect segments by pinning.",
            "stash-by-default": "When uncertain, tools stash instead of deleting.",
            "delete-reserved": "Deletion needs an explicit request or a clearly unused segment.",
        },
        issue=5,
        code="mcp/service.py",
        differs={
            "delete-reserved": "Only an explicit request deletes. What merely looks unused is stashed: no score can know.",
        },
    ),
    *section(
        "S0.dependencies",
        "8 Dependencies and libraries",
        {"mcp-sdk": "Tools are exposed with the official MCP SDK."},
        issue=5,
        code="mcp/server.py",
        differs={
            "mcp-sdk": "pydantic stays at this edge: tool arguments only.",
        },
    ),
    *section(
        "S0.platform",
        "9.3 With platform integration",
        {
            "active-editor": "The active editor's file and line become roots through a tool.",
            "open-files": "Open tabs and breakpoints enrich the roots.",
            "working-state": "Tools never prune what the platform names as working state.",
        },
        issue=5,
        code="mcp/settings.py",
    ),
)
