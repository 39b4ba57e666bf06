"""The server: the official SDK in front of a context service; results and schemas as clients get them."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from traceback import format_exception
from typing import Any, TypeVar

import anyio.to_thread
import mcp_types as types
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, ValidationError

from ctxgc._version import __version__
from ctxgc.config import mask_text
from ctxgc.errors import CtxgcError, InputError
from ctxgc.mcp import resources
from ctxgc.mcp.request import Json
from ctxgc.mcp.service import ContextService
from ctxgc.mcp.tools import ClientIsAskedError, McpTool, Profile, ToolRequest, tools_of

Ctx = ServerRequestContext[Any, Any]
ServiceOf = Callable[[Ctx], ContextService]
NAME = "ctxgc"

INSTRUCTIONS = (
    "Keeps your context small without losing anything. Put in what matters (context_ingest), look at "
    "context_usage now and then, and when it says so call context_gc_analyze and context_gc_prune. "
    "What was stashed comes back with context_recall or context_search."
)

T = TypeVar("T")

PAGE = 50
log = logging.getLogger("ctxgc.mcp")
_NOISE = frozenset({"title", "maxLength", "minLength", "maxItems", "minItems"})


def build_server(service_of: ServiceOf, profile: Profile = "full") -> Server[Any]:
    """Return a server with the tools of a profile, all resources and all prompts.

    Args:
        service_of: finds the context of the caller of a request.
        profile: which tools it offers.
    """
    handlers = _Handlers(service_of, {tool.name: tool for tool in tools_of(profile)})
    server: Server[Any] = Server(
        NAME,
        version=__version__,
        title="ctxgc",
        instructions=INSTRUCTIONS,
        get_tool_input_schema=handlers.schemas.get,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
    )
    # What a client sends back between two rounds of a call is sealed, so that it cannot be forged.
    sealed = RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=NAME)
    server.middleware.append(sealed)
    return server


def listed(tool: McpTool) -> types.Tool:
    """Return a tool as clients see it."""
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=input_schema(tool.arguments),
        annotations=types.ToolAnnotations(
            read_only_hint=tool.reads_only, destructive_hint=tool.destroys
        ),
    )


class _Handlers:
    """What the SDK calls."""

    def __init__(self, service_of: ServiceOf, tools: Mapping[str, McpTool]) -> None:
        self._service_of = service_of
        self._tools = tools
        self._listed = [listed(tool) for tool in tools.values()]
        self.schemas = {tool.name: tool.input_schema for tool in self._listed}

    async def list_tools(
        self, _: Ctx, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        shown, following = page(self._listed, params)
        return types.ListToolsResult(tools=shown, next_cursor=following)

    async def call_tool(
        self, ctx: Ctx, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        tool = self._tools.get(params.name)
        if tool is None:
            known = ", ".join(self._tools)
            raise MCPError(
                code=types.INVALID_PARAMS,
                message=f"unknown tool '{params.name[:80]}' (there are: {known})",
            )
        try:
            asked = tool.arguments.model_validate(params.arguments or {})
            call = ToolRequest(self._service_of(ctx), ctx, params)
            return result(await tool.run(call, asked))
        except ValidationError as error:
            return failure(refused(error, tool.arguments.model_fields))
        except CtxgcError as error:
            return failure(error)
        except ClientIsAskedError as asking:
            return asking.question
        except Exception as error:  # noqa: BLE001 - the caller is told, and the server continues
            return crash(error)

    async def list_resources(
        self, _: Ctx, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        shown, following = page(resources.RESOURCES, params)
        return types.ListResourcesResult(resources=shown, next_cursor=following)

    async def list_templates(
        self, _: Ctx, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        shown, following = page(resources.TEMPLATES, params)
        return types.ListResourceTemplatesResult(resource_templates=shown, next_cursor=following)

    async def read_resource(
        self, ctx: Ctx, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        service = self._service_of(ctx)
        data = await anyio.to_thread.run_sync(resources.read_resource, service, str(params.uri))
        contents = types.TextResourceContents(
            uri=params.uri, text=as_text(data), mime_type=resources.JSON_TYPE
        )
        return types.ReadResourceResult(contents=[contents])

    async def list_prompts(
        self, _: Ctx, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        shown, following = page(resources.PROMPTS, params)
        return types.ListPromptsResult(prompts=shown, next_cursor=following)

    async def get_prompt(
        self, ctx: Ctx, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        service = self._service_of(ctx)
        return await anyio.to_thread.run_sync(
            resources.get_prompt, service, params.name, params.arguments
        )


# -- Results: data for programs, and the same as text


def result(answer: Json, *, is_error: bool = False) -> types.CallToolResult:
    """Return an answer as a tool result."""
    text = as_text(answer)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)],
        structured_content=json.loads(text),
        is_error=is_error,
    )


def failure(error: CtxgcError) -> types.CallToolResult:
    """Return an error as a tool result: code, message, hint, details."""
    return result(error.to_dict(), is_error=True)


def crash(error: Exception) -> types.CallToolResult:
    """Return what a caller is told about an unexpected error: that it happened, and no more."""
    log.error("a tool failed\n%s", mask_text("".join(format_exception(error))))
    return failure(
        CtxgcError("the server failed; nothing was changed", hint="see the server's log on stderr")
    )


def refused(error: ValidationError, known: Iterable[str]) -> InputError:
    """Return pydantic's error as one of ours, without the offending values."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    first = found[0]
    field = ".".join(str(step) for step in first["loc"]) or "arguments"
    problems = [f"{'.'.join(str(s) for s in each['loc'])}: {each['msg']}" for each in found[:10]]
    return InputError(
        f"{field}: {first['msg']}",
        hint=f"the arguments are: {', '.join(known) or 'none'}",
        field=field,
        problems=problems,
    )


def as_text(answer: Json) -> str:
    """Return an answer as compact JSON; a lone surrogate, which UTF-8 has no bytes for, becomes U+FFFD."""
    text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"), default=str)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def page(
    items: Sequence[T], params: types.PaginatedRequestParams | None
) -> tuple[list[T], str | None]:
    """Return the page that a cursor asks for, and the cursor of the next.

    Raises:
        MCPError: the cursor is not one of ours.
    """
    cursor = params.cursor if params is not None else None
    if cursor is None:
        start = 0
    elif cursor.isascii() and cursor.isdigit() and 0 < int(cursor[:9]) < len(items):
        start = int(cursor[:9])
    else:
        raise MCPError(code=types.INVALID_PARAMS, message="unknown cursor")
    end = start + PAGE
    return list(items[start:end]), str(end) if end < len(items) else None


# -- Schemas: as small as possible, because an agent pays for them in every request


def input_schema(arguments: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON Schema of a tool's arguments, without titles, nulls and references.

    Limits on lengths are left out as well; they are still checked.
    """
    schema = arguments.model_json_schema()
    known = schema.pop("$defs", {})
    found = _tidy(schema, known)
    found.pop("description", None)
    return {"type": "object", **{k: v for k, v in found.items() if k != "type"}}


def _tidy(schema: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        inner = _tidy(dict(known[schema["$ref"].rpartition("/")[2]]), known)
        inner.pop("description", None)
        return inner
    options = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) == 1:
        rest = {k: v for k, v in schema.items() if k not in ("anyOf", "default")}
        return _tidy({**options[0], **rest}, known)
    return {key: _value(key, value, known) for key, value in schema.items() if _counts(key, value)}


def _counts(key: str, value: Any) -> bool:
    return key not in _NOISE and not (key == "default" and value in (None, [], ""))


def _value(key: str, value: Any, known: dict[str, Any]) -> Any:
    if key == "properties":
        return {name: _tidy(inner, known) for name, inner in value.items()}
    if key in ("items", "additionalProperties") and isinstance(value, dict):
        return _tidy(value, known)
    return value
