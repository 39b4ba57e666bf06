"""The server: the official SDK in front of a context service."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import anyio.to_thread
import mcp_types as types
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from ctxgc._version import __version__
from ctxgc.errors import CtxgcError
from ctxgc.mcp import prompts, resources
from ctxgc.mcp.calls import Call, ClientIsAskedError
from ctxgc.mcp.results import as_text, crash, failure, page, refused, result
from ctxgc.mcp.schema import input_schema
from ctxgc.mcp.service import ContextService
from ctxgc.mcp.tools import Profile, Tool, tools_of

Ctx = ServerRequestContext[Any, Any]
ServiceOf = Callable[[Ctx], ContextService]
NAME = "ctxgc"

INSTRUCTIONS = (
    "Keeps your context small without losing anything. Put in what matters (context_ingest), look at "
    "context_usage now and then, and when it says so call context_gc_analyze and context_gc_prune. "
    "What was stashed comes back with context_recall or context_search."
)


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
    # What a client has to send back between two rounds of a call is sealed, so that it cannot forge it.
    sealed = RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=NAME)
    server.middleware.append(sealed)
    return server


def listed(tool: Tool) -> types.Tool:
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

    def __init__(self, service_of: ServiceOf, tools: Mapping[str, Tool]) -> None:
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
            call = Call(self._service_of(ctx), ctx, params)
            return result(await tool.run(call, asked))
        except ValidationError as error:
            return failure(refused(error, tool.arguments.model_fields))
        except CtxgcError as error:
            return failure(error)
        except ClientIsAskedError as asking:
            return asking.question
        except Exception as error:  # noqa: BLE001 - a caller hears of it, and the server lives on
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
        data = await anyio.to_thread.run_sync(resources.read, service, str(params.uri))
        contents = types.TextResourceContents(
            uri=params.uri, text=as_text(data), mime_type=resources.JSON_TYPE
        )
        return types.ReadResourceResult(contents=[contents])

    async def list_prompts(
        self, _: Ctx, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        shown, following = page(prompts.PROMPTS, params)
        return types.ListPromptsResult(prompts=shown, next_cursor=following)

    async def get_prompt(
        self, ctx: Ctx, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        service = self._service_of(ctx)
        return await anyio.to_thread.run_sync(
            prompts.render, service, params.name, params.arguments
        )
