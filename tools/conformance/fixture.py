"""The fixture server: what the suite expects to find, served by the application factory of `ctxgc mcp`.

Most scenarios call tools, resources and prompts with fixed names. Our own server has others, so this
one has theirs; what is under test is everything around them: the factory, its checks, its limits.
"""

from __future__ import annotations

import socket
import sys
from typing import Any

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.prompts.base import Message, UserMessage
from mcp_types import (
    CompleteRequestParams,
    CompleteResult,
    Completion,
    EmbeddedResource,
    EmptyResult,
    ImageContent,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextResourceContents,
    UnsubscribeRequestParams,
)

from ctxgc.mcp import ContextService
from ctxgc.mcp.transport import Callers, http_app
from tools.conformance import fixture_asking, fixture_rounds, fixture_tools
from tools.conformance.samples import PNG

TEXT = "This is the content of the static text resource."


def build() -> MCPServer[Any]:
    """Return the fixture server."""
    server: MCPServer[Any] = MCPServer(
        "ctxgc-fixture", version="1", tools=[fixture_tools.schema_tool()], log_level="ERROR"
    )
    for module in (fixture_tools, fixture_asking, fixture_rounds):
        for tool in module.TOOLS:
            server.add_tool(tool, structured_output=False)
    _add_resources(server)
    _add_prompts(server)
    _add_methods(server)
    return server


def _add_resources(server: MCPServer[Any]) -> None:
    @server.resource("test://static-text", description="Static text", mime_type="text/plain")
    def static_text() -> str:
        return TEXT

    @server.resource("test://static-binary", description="Static image", mime_type="image/png")
    def static_binary() -> bytes:
        return PNG

    @server.resource("test://watched-resource", description="Watched", mime_type="text/plain")
    def watched() -> str:
        return "watched"

    @server.resource("test://template/{id}/data", description="By id", mime_type="application/json")
    def by_id(id: str) -> dict[str, Any]:  # noqa: A002 - the suite's name
        return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


def _add_prompts(server: MCPServer[Any]) -> None:
    @server.prompt(description="Simple")
    def test_simple_prompt() -> str:
        return "This is a simple prompt for testing."

    @server.prompt(description="With arguments")
    def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @server.prompt(description="With a resource")
    def test_prompt_with_embedded_resource(resourceUri: str) -> list[Message]:  # noqa: N803
        held = TextResourceContents(
            uri=resourceUri, mime_type="text/plain", text="Embedded resource content for testing."
        )
        return [
            UserMessage(EmbeddedResource(type="resource", resource=held)),
            UserMessage("Please process the embedded resource above."),
        ]

    @server.prompt(description="With an image")
    def test_prompt_with_image() -> list[Message]:
        image = ImageContent(type="image", data=fixture_tools.base64(PNG), mime_type="image/png")
        return [UserMessage(image), UserMessage("Please analyze the image above.")]

    server.prompt(description="Asks first")(fixture_rounds.test_input_required_result_prompt)


def _add_methods(server: MCPServer[Any]) -> None:
    """Completion, and methods of the 2025 revisions that the high-level server does not offer."""
    low = server._lowlevel_server  # noqa: SLF001 - the SDK has no public way

    async def done(_: Any, __: Any) -> EmptyResult:
        return EmptyResult()

    async def complete(_: Any, __: Any) -> CompleteResult:
        return CompleteResult(completion=Completion(values=["test"], total=1, has_more=False))

    low.add_request_handler("completion/complete", CompleteRequestParams, complete)
    low.add_request_handler("resources/subscribe", SubscribeRequestParams, done)
    low.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, done)
    low.add_request_handler("logging/setLevel", SetLevelRequestParams, done)


def _nobody(name: str) -> ContextService:
    raise LookupError(name)


def main() -> None:
    """Serve on a free port, which is printed."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        app = http_app(build(), Callers(None, _nobody), port=port)
        sys.stderr.write(f"fixture serves http://127.0.0.1:{port}/mcp\n")
        sys.stderr.flush()
        uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])


if __name__ == "__main__":
    main()
