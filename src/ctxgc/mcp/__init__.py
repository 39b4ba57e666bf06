"""The MCP server: context management that an agent can ask for.

`ContextService` is the whole of it without the protocol; `build_server` puts it behind the tools,
`serve_stdio` and `http_app` put those on a wire. Importing this package loads none of the protocol.
"""

from ctxgc.mcp.service import ContextService

__all__ = ["ContextService"]
