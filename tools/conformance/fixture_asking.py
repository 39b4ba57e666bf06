"""Tools of the fixture that ask the client in the middle of a call, as the 2025 revisions do."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CreateMessageResult,
    SamplingMessage,
    TextContent,
)

_TITLED = [
    {"const": f"value{number}", "title": f"{nth} Option"}
    for number, nth in enumerate(("First", "Second", "Third"), 1)
]
_PLAIN = ["option1", "option2", "option3"]

DEFAULTS: dict[str, Any] = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
ENUMS: dict[str, Any] = {
    "untitledSingle": {"type": "string", "enum": _PLAIN},
    "titledSingle": {"type": "string", "oneOf": _TITLED},
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": _PLAIN}},
    "titledMulti": {"type": "array", "items": {"anyOf": _TITLED}},
}


async def test_sampling(prompt: str, ctx: Context[Any, Any]) -> str:
    """Ask the client's model."""
    content = TextContent(type="text", text=prompt)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        answer: CreateMessageResult = await ctx.session.create_message(
            [SamplingMessage(role="user", content=content)],
            max_tokens=100,
            related_request_id=ctx.request_id,
        )
    return f"LLM response: {getattr(answer.content, 'text', '')}"


async def test_elicitation(message: str, ctx: Context[Any, Any]) -> str:
    """Ask the user."""
    fields = {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    }
    return f"User response: {await _elicit(ctx, message, fields, ['username', 'email'])}"


async def test_elicitation_sep1034_defaults(ctx: Context[Any, Any]) -> str:
    """Ask with a default for every kind of field."""
    return f"Elicitation completed: {await _elicit(ctx, 'Please check', DEFAULTS, [])}"


async def test_elicitation_sep1330_enums(ctx: Context[Any, Any]) -> str:
    """Ask with every kind of choice."""
    return f"Elicitation completed: {await _elicit(ctx, 'Please choose', ENUMS, [])}"


def test_missing_capability(ctx: Context[Any, Any]) -> str:
    """Need a client that can sample."""
    offered = ctx.client_capabilities
    if offered is None or offered.sampling is None:
        raise MCPError(
            code=MISSING_REQUIRED_CLIENT_CAPABILITY,
            message="this tool needs sampling",
            data={"requiredCapabilities": {"sampling": {}}},
        )
    return "done"


async def _elicit(
    ctx: Context[Any, Any], message: str, fields: dict[str, Any], required: list[str]
) -> str:
    schema = {"type": "object", "properties": fields, "required": required}
    answer = await ctx.session.elicit_form(message, schema, related_request_id=ctx.request_id)
    return f"action={answer.action}, content={json.dumps(answer.content)}"


TOOLS: tuple[Callable[..., Any], ...] = (
    test_sampling, test_elicitation, test_elicitation_sep1034_defaults,
    test_elicitation_sep1330_enums, test_missing_capability,
)  # fmt: skip
