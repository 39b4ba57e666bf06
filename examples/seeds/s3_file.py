"""S3 "1. File-Based Configuration", blocks 4 and 5: `.jaato/gc.json`, read by a session and by hand."""

from pathlib import Path

from ctxgc import Session

# -- block 4

GC_JSON = """
{
  "type": "hybrid",
  "threshold_percent": 80.0,
  "preserve_recent_turns": 5,
  "notify_on_gc": true,
  "summarize_middle_turns": 10,
  "max_turns": null,
  "plugin_config": {}
}
"""

Path(".jaato").mkdir()
Path(".jaato", "gc.json").write_text(GC_JSON)
client = Session(model="gpt-4o")  # reads the file by itself; so does ChatClient
assert (client.plugin.name, client.config.summarize_middle_turns) == ("gc_hybrid", 10)

# -- block 5

from ctxgc import load_gc_from_file

result = load_gc_from_file()  # Defaults to .ctxgc/gc.json, else .jaato/gc.json
if result:
    gc_plugin, gc_config = result
    client.set_gc_plugin(gc_plugin, gc_config)

# -- ours

assert client.plugin.name == "gc_hybrid"
assert (client.config.threshold_percent, client.config.preserve_recent_turns) == (80.0, 5)
assert client.config.max_turns is None
Path(".jaato", "gc.json").unlink()
assert load_gc_from_file() is None
