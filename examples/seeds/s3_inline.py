"""S3 "3. Inline Configuration", block 7: a subagent with a collector of its own, for one task."""

import os

from ctxgc.client import ChatClient
from ctxgc.testing import StrictServer, ToolCall


def look(page: int) -> str:
    """Return a page."""
    return f"page {page}: " + "a line of the log\n" * 100


os.environ["OPENAI_API_KEY"] = "any"
server = StrictServer([*(ToolCall("look", {"page": n}) for n in range(5)), "done"], context_limit=8_192).start()
client = ChatClient()
client.connect(None, server.openai_base_url, "gpt-4", tools=[look])
spawn_subagent = client.spawn_subagent

# -- the block

reply = spawn_subagent(
    task="Stress test GC behavior",
    inline_config={
        "gc": {
            "type": "truncate",
            "threshold_percent": 5.0,  # Trigger early for testing
            "preserve_recent_turns": 3
        }
    }
)

# -- ours

assert (reply, reply.profile) == ("done", None)
assert {result.plugin_name for result in reply.gc_history} == {"gc_truncate"}
assert reply.session_id != client.session.session_id
assert client.get_gc_history() == []
client.close()
server.close()
