"""S3 "gc_truncate", block 1: the oldest turns go; a class of ours is what makes the plugin."""

import os

from ctxgc.client import ChatClient
from ctxgc.testing import StrictServer

os.environ["OPENAI_API_KEY"] = "any"
server = StrictServer(["an answer " * 90] * 40, context_limit=128_000).start()  # plays the provider
client = ChatClient()
client.connect(None, server.openai_base_url, "gpt-4", context_limit=6_000)

# -- the block

from ctxgc.strategies import TruncateStrategy as create_plugin
from ctxgc import GCConfig

plugin = create_plugin()
plugin.initialize({
    "preserve_recent_turns": 10,  # Keep last 10 turns
    "notify_on_gc": True          # Inject notification into history
})

client.set_gc_plugin(plugin, GCConfig(threshold_percent=75.0))

# -- ours

for number in range(40):
    client.send_message(f"question {number}")
results = client.get_gc_history()
assert results and {result.plugin_name for result in results} == {"gc_truncate"}
assert {item.reason for result in results for item in result.removal_list} <= {"truncated", "old_notice"}
assert results[-1].notification in str(client.session.view())
assert client.session.usage().percent_used < 95
client.close()
server.close()
