"""S3 "Creating Custom GC Plugins", blocks 10 and 11: a plugin of another package, found by its entry point.

Fault of the seed: `collect` is a sketch, with `...` where its logic and numbers would be; here it keeps the ends.
"""

import sys
import tomllib
from pathlib import Path

from ctxgc import Session, load_gc_plugin

# -- block 10

from ctxgc import GCPlugin, GCConfig, GCResult, GCTriggerReason

class MyCustomGCPlugin:
    @property
    def name(self) -> str:
        return "gc_custom"

    def initialize(self, config=None):
        self._config = config or {}

    def shutdown(self):
        pass

    def should_collect(self, context_usage, config):
        percent = context_usage.get('percent_used', 0)
        if percent >= config.threshold_percent:
            return True, GCTriggerReason.THRESHOLD
        return False, None

    def collect(self, history, context_usage, config, reason):
        # Implement your GC logic
        new_history = history[:2] + history[-2:]
        result = GCResult(
            success=True,
            items_collected=len(history) - len(new_history),
            tokens_before=context_usage["total_tokens"],
            tokens_after=context_usage["target_tokens"],
            plugin_name=self.name,
            trigger_reason=reason
        )
        return new_history, result

def create_plugin():
    return MyCustomGCPlugin()

# -- block 11

PYPROJECT = """
[project.entry-points."jaato.gc_plugins"]
gc_custom = "my_package:create_plugin"
"""

# -- ours: what an installer makes of that

(group, entries), = tomllib.loads(PYPROJECT)["project"]["entry-points"].items()
installed = Path("my_package-1.0.dist-info")
installed.mkdir()
(installed / "METADATA").write_text("Metadata-Version: 2.1\nName: my_package\nVersion: 1.0\n")
(installed / "entry_points.txt").write_text(
    f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
)
sys.path.insert(0, str(Path.cwd()))
sys.modules["my_package"] = sys.modules[__name__]

plugin = load_gc_plugin("gc_custom", {"colour": "green"})
assert isinstance(plugin, MyCustomGCPlugin) and isinstance(plugin, GCPlugin)
session = Session(2_000, plugin=plugin, config=GCConfig(threshold_percent=75.0))
for number in range(9):
    session.append({"role": "user", "content": f"question {number}"})
    session.append({"role": "assistant", "content": "an answer " * 90})
session.append({"role": "user", "content": "and now?"})
sent = session.messages()
(result,) = session.gc_history
assert (result.plugin_name, result.trigger_reason) == ("gc_custom", GCTriggerReason.THRESHOLD)
assert (len(sent), result.items_collected) == (4, 15)
assert result.tokens_after == session.usage().total_tokens  # the session puts a plugin's numbers right
