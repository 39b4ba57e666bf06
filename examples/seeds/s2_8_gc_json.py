"""S2 "Configuration", block 8: the file `.jaato/gc.json`, in their place and in ours.

Fault of the seed: the comment in the first line, which names the file, is not JSON.
"""

from pathlib import Path

from ctxgc import load_gc_from_file

# -- the block

BLOCK = """
{
    "plugin": "gc_budget",
    "config": {
        "preserve_recent_turns": 5,
        "target_percent": 60.0,
        "pressure_percent": 90.0,
        "notify_on_gc": true
    }
}
"""

# -- ours

for folder in (".jaato", ".ctxgc"):
    Path(folder).mkdir()
    Path(folder, "gc.json").write_text(BLOCK, encoding="utf-8")
    plugin, config = load_gc_from_file()
    assert plugin.name == "gc_budget"
    assert (config.preserve_recent_turns, config.notify_on_gc) == (5, True)
    assert (config.target_percent, config.pressure_percent) == (60.0, 90.0)
