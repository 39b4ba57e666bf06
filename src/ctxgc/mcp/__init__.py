"""The MCP server: context management that an agent can ask for.

`ContextService` is the whole of it without the protocol; `build_server` puts it behind the tools,
`serve_stdio` and `http_app` put those on a wire. Importing this package loads none of the protocol.
"""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.mcp.ingest import NewSegment
    from ctxgc.mcp.service import ContextService
    from ctxgc.mcp.start import Options, run_http, run_stdio, schema_costs
    from ctxgc.mcp.transport import Wire
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "ingest": "NewSegment",
            "service": "ContextService",
            "start": "Options run_http run_stdio schema_costs",
            "transport": "Wire",
        },
    )
