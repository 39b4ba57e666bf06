"""S3 "Plugin Discovery", block 9: all plugins by name; ours has three more than the seed."""

# -- the block

from ctxgc import discover_gc_plugins, load_gc_plugin

# List available plugins
plugins = discover_gc_plugins()
print(plugins.keys())  # ['gc_truncate', 'gc_summarize', 'gc_hybrid'], and gc_mark_sweep, gc_budget, gc_none

# Load by name
plugin = load_gc_plugin('gc_truncate', {'preserve_recent_turns': 10})

# -- ours

assert {"gc_truncate", "gc_summarize", "gc_hybrid"} < plugins.keys()
assert plugin.name == "gc_truncate"
assert plugins["gc_hybrid"]().name == "gc_hybrid"
