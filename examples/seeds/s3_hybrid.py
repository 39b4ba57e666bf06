"""S3 "gc_hybrid", block 3: recent turns stay, middle ones are summarized, ancient ones go."""

import os

from ctxgc.client import ChatClient
from ctxgc.testing import StrictServer

os.environ["OPENAI_API_KEY"] = "any"
server = StrictServer(["an answer " * 90] * 40, context_limit=128_000).start()  # plays the provider
client = ChatClient()
client.connect(None, server.openai_base_url, "gpt-4", context_limit=6_000)

# -- the block

my_summarizer = lambda conversation: f"a summary of {len(conversation)} characters"

from ctxgc.strategies import HybridStrategy as create_plugin
from ctxgc import GCConfig

plugin = create_plugin()
plugin.initialize({
    "preserve_recent_turns": 5,    # Keep last 5 intact
    "summarize_middle_turns": 15,  # Summarize next 15
    "summarizer": my_summarizer    # Optional
})

client.set_gc_plugin(plugin, GCConfig(threshold_percent=75.0))

# -- ours

for number in range(40):
    client.send_message(f"question {number}")
results = client.get_gc_history()
assert {result.plugin_name for result in results} == {"gc_hybrid"}
reasons = {item.reason for result in results for item in result.removal_list}
assert "ancient_truncated" in reasons
assert reasons <= {"ancient_truncated", "middle_summarized", "old_notice"}
assert client.session.usage().percent_used < 95
client.close()
server.close()
