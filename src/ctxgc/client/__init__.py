"""ChatClient: a model over its official SDK, its tools, and a session that keeps its context small.

    from ctxgc.client import ChatClient

The SDKs are extras: `ctxgc[openai]`, `ctxgc[anthropic]`. They are imported when one connects.
"""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.client.client import ChatClient, SubagentResult
    from ctxgc.client.tools import Reply, Tool
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "client": "ChatClient SubagentResult",
            "tools": "Reply Tool",
        },
    )
