"""The MCP server: context management that an agent can ask for.

Importing this package loads nothing of the protocol.

- `service`: `ContextService`, all of it without the protocol; `request`: what its answers use.
- answers: `usage`, `ingest`, `prune`, `recall`, `compress`, `settings`, `checkpoints`.
- `context`: a context in memory; `repository`: a context in its store.
- `tools`, `arguments`, `resources`: what clients see; `server`: the SDK in front of it.
- `transport`: stdio and HTTP; `start`: a server from options.
"""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.mcp.ingest import NewSegment
    from ctxgc.mcp.service import ContextService
    from ctxgc.mcp.start import (
        ServerOptions,
        callers_note,
        mcp_app,
        run_http,
        run_stdio,
        schema_costs,
    )
    from ctxgc.mcp.transport import ProtocolStdout
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "ingest": "NewSegment",
            "service": "ContextService",
            "start": "ServerOptions callers_note mcp_app run_http run_stdio schema_costs",
            "transport": "ProtocolStdout",
        },
    )
