"""Tools of the fixture that answer by themselves: contents of every kind, errors, progress, changes."""

from __future__ import annotations

import warnings
from base64 import b64encode
from collections.abc import Callable
from typing import Annotated, Any

import anyio
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp_types import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    TextContent,
    TextResourceContents,
)
from pydantic import Field

from tools.conformance.samples import PNG, WAV

PAUSE = 0.05


def base64(data: bytes) -> str:
    """Return bytes as the protocol carries them."""
    return b64encode(data).decode()


def _embedded(uri: str, kind: str, text: str) -> EmbeddedResource:
    held = TextResourceContents(uri=uri, mime_type=kind, text=text)
    return EmbeddedResource(type="resource", resource=held)


def test_simple_text() -> str:
    """Return a text."""
    return "This is a simple text response for testing."


def test_image_content() -> ImageContent:
    """Return an image."""
    return ImageContent(type="image", data=base64(PNG), mime_type="image/png")


def test_audio_content() -> AudioContent:
    """Return a sound."""
    return AudioContent(type="audio", data=base64(WAV), mime_type="audio/wav")


def test_embedded_resource() -> EmbeddedResource:
    """Return a resource."""
    text = "This is an embedded resource content."
    return _embedded("test://embedded-resource", "text/plain", text)


def test_multiple_content_types() -> list[TextContent | ImageContent | EmbeddedResource]:
    """Return contents of three kinds."""
    data = '{"test":"data","value":123}'
    return [
        TextContent(type="text", text="Multiple content types test:"),
        test_image_content(),
        _embedded("test://mixed-content-resource", "application/json", data),
    ]


def test_error_handling() -> str:
    """Fail."""
    raise ToolError("This tool intentionally returns an error for testing")


async def test_tool_with_progress(ctx: Context[Any, Any]) -> str:
    """Report progress."""
    for done in (0, 50, 100):
        await ctx.report_progress(done, 100)
        await anyio.sleep(PAUSE)
    return "done"


async def test_tool_with_logging(ctx: Context[Any, Any]) -> str:
    """Write three lines into the client's log."""
    for said in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await _log(ctx, said)
        await anyio.sleep(PAUSE)
    return "done"


async def test_logging_tool(ctx: Context[Any, Any]) -> str:
    """Log, which nobody hears who did not ask for it."""
    await _log(ctx, "said once")
    return "done"


async def test_trigger_tool_change(ctx: Context[Any, Any]) -> str:
    """Tell that the tools changed."""
    await ctx.notify_tools_changed()
    return "done"


async def test_trigger_prompt_change(ctx: Context[Any, Any]) -> str:
    """Tell that the prompts changed."""
    await ctx.notify_prompts_changed()
    return "done"


def test_custom_headers(
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})],
) -> str:
    """Take an argument that a header repeats."""
    return region


def schema_tool() -> Tool:
    """Return the tool whose schema uses the whole vocabulary of 2020-12."""

    def json_schema_2020_12_tool(name: str = "") -> str:
        return name

    tool = Tool.from_function(
        json_schema_2020_12_tool, description="Tool with JSON Schema 2020-12 features"
    )
    tool.parameters = SCHEMA
    return tool


SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


async def _log(ctx: Context[Any, Any], text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        await ctx.log("info", text)


TOOLS: tuple[Callable[..., Any], ...] = (
    test_simple_text, test_image_content, test_audio_content, test_embedded_resource,
    test_multiple_content_types, test_error_handling, test_tool_with_progress, test_tool_with_logging,
    test_logging_tool, test_trigger_tool_change, test_trigger_prompt_change, test_custom_headers,
)  # fmt: skip
