"""ChatClient: a model over its official SDK, its tools, and a session that keeps its context small.

    from ctxgc.client import ChatClient

The SDKs are extras: `ctxgc[openai]`, `ctxgc[anthropic]`. They are imported when one connects.
"""

from ctxgc.client.answer import Reply
from ctxgc.client.client import ChatClient
from ctxgc.client.subagent import SubagentResult
from ctxgc.client.tool import Tool

__all__ = ["ChatClient", "Reply", "SubagentResult", "Tool"]
