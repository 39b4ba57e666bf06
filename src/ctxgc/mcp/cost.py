"""What the tools cost an agent: the tokens of their schemas, counted exactly."""

from __future__ import annotations

import json

from ctxgc.mcp.server import listed
from ctxgc.mcp.tools import PROFILES, Profile, tools_of
from ctxgc.tokens import ExactCounter


def schema_cost(profile: Profile) -> int:
    """Return the tokens (o200k) of a profile's list of tools as clients get it."""
    tools = [
        listed(tool).model_dump(by_alias=True, mode="json", exclude_none=True)
        for tool in tools_of(profile)
    ]
    text = json.dumps({"tools": tools}, ensure_ascii=False, separators=(",", ":"))
    return ExactCounter("o200k_base").count(text)


def schema_costs() -> dict[Profile, int]:
    """Return the cost of every profile."""
    return {profile: schema_cost(profile) for profile in PROFILES}
