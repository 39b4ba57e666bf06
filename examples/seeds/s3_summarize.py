"""S3 "gc_summarize", block 2: old turns become a summary; `model` is what the reader has."""

from types import SimpleNamespace
import os

from ctxgc.client import ChatClient
from ctxgc.testing import StrictServer

os.environ["OPENAI_API_KEY"] = "any"
server = StrictServer(["an answer " * 90] * 40, context_limit=128_000).start()  # plays the provider
client = ChatClient()
client.connect(None, server.openai_base_url, "gpt-4", context_limit=6_000)

# -- the block

model = SimpleNamespace(generate=lambda prompt: f"a summary of {len(prompt)} characters")

from ctxgc.strategies import SummarizeStrategy as create_plugin
from ctxgc import GCConfig

def my_summarizer(conversation: str) -> str:
    # Use your model to generate summary
    return model.generate(f"Summarize this conversation:\n{conversation}")

plugin = create_plugin()
plugin.initialize({
    "preserve_recent_turns": 10,
    "summarizer": my_summarizer,  # Required
    "notify_on_gc": True
})

client.set_gc_plugin(plugin, GCConfig(threshold_percent=75.0))

# -- ours

for number in range(40):
    client.send_message(f"question {number}")
results = client.get_gc_history()
assert {result.plugin_name for result in results} == {"gc_summarize"}
assert {item.reason for result in results for item in result.removal_list} <= {"summarized", "old_notice"}
assert "a summary of " in str(client.session.view())
client.close()
server.close()
