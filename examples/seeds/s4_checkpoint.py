"""S4 "Checkpoint Contents", block 8: ours has the same fields, `save(path)` and `load(path, timestamp)`.

Fault of the seed: `to_dict` and `from_dict` are used and not given; `to_dict` must turn the time into text.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime

import ctxgc

# -- the block


class Checkpoint:
    timestamp: datetime
    context_snapshot: Dict  # Full context state
    system_state: ProjectState
    task_queue: List[Task]
    metrics: HealthMetrics
    conversation_history: List[Message]  # Compressed
    file_checksums: Dict[str, str]  # For verification

    def save(self, path: str):
        """Save checkpoint to disk"""
        checkpoint_file = f"{path}/checkpoint_{self.timestamp.isoformat()}.json"
        with open(checkpoint_file, 'w') as f:
            json.dump(self.to_dict(), f, indent=2)

    @staticmethod
    def load(path: str, timestamp: str) -> 'Checkpoint':
        """Load checkpoint from disk"""
        checkpoint_file = f"{path}/checkpoint_{timestamp}.json"
        with open(checkpoint_file, 'r') as f:
            data = json.load(f)
        return Checkpoint.from_dict(data)


# -- ours


@dataclass
class ProjectState:
    branch: str


@dataclass
class Task:
    title: str


contents = {
    "timestamp": datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC),
    "context_snapshot": {"system_prompt": "be brief"},
    "system_state": ProjectState("main"),
    "task_queue": [Task("write the tests")],
    "metrics": {"health": 0.9},
    "conversation_history": [{"role": "user", "content": "begin " * 200}],
    "file_checksums": {"cart.py": "0" * 64},
}
assert list(contents) == list(Checkpoint.__annotations__)
made = ctxgc.Checkpoint(**contents)
file = made.save("checkpoints")
loaded = ctxgc.Checkpoint.load("checkpoints", made.timestamp.isoformat())
assert loaded == made == ctxgc.Checkpoint.from_dict(json.loads(file.read_text()))
assert loaded.task_queue == [{"title": "write the tests"}]
assert len(file.read_text()) < len(json.dumps(contents["conversation_history"]))  # compressed
