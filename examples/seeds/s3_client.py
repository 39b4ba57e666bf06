"""S3 "4. Programmatic Configuration", block 8: a client that connects, collects by itself and by hand."""

import os

from ctxgc.testing import StrictServer

os.environ["OPENAI_API_KEY"] = "any"
server = StrictServer(["Hello to you."], context_limit=128_000).start()
project, location, model = "my-project", server.openai_base_url, "gpt-4o"

# -- the block

from ctxgc.client import ChatClient
from ctxgc import GCConfig, load_gc_plugin

# Create client
client = ChatClient()
client.connect(project, location, model)

# Load and set GC plugin
gc_plugin = load_gc_plugin('gc_truncate', {
    'preserve_recent_turns': 10
})
client.set_gc_plugin(gc_plugin, GCConfig(
    threshold_percent=75.0,
    check_before_send=True
))

# Use client normally - GC triggers automatically
response = client.send_message("Hello")

# Manual GC
result = client.manual_gc()
print(f"Freed {result.tokens_freed} tokens")

# View GC history
for result in client.get_gc_history():
    print(f"{result.plugin_name}: {result.items_collected} items collected")

# -- ours

assert response == "Hello to you."
assert (result.plugin_name, result.items_collected) == ("gc_truncate", 0)
assert client.session.context_limit == 128_000  # the window of the model
assert client.session.config.threshold_percent == 75.0
client.close()
server.close()
