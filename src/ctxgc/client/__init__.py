"""ChatClient: a model over its official SDK, its tools, and a session that keeps its context small.

    from ctxgc.client import AsyncChatClient, ChatClient

The SDKs are extras (`ctxgc[openai]`, `ctxgc[anthropic]`), imported on `connect()`.

- `client`: `ChatClient` and subagents; `async_client`: the same for an event loop.
- `conversation`: ask, run the calls, ask again.
- `provider`: what a provider must do; `openai_chat`, `openai_responses`, `anthropic_messages`: the three.
- `answer`: what a model answers; `tools`: functions that it may call, and recall.
"""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.client.answer import Reply
    from ctxgc.client.async_client import AsyncChatClient
    from ctxgc.client.client import ChatClient, SubagentResult
    from ctxgc.client.conversation import overflow_of
    from ctxgc.client.tools import Tool
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "answer": "Reply",
            "async_client": "AsyncChatClient",
            "client": "ChatClient SubagentResult",
            "conversation": "overflow_of",
            "tools": "Tool",
        },
    )
