"""What is in work is a root in a session: it leaves last, and only where room must be made."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from ctxgc import GCConfig, Session
from ctxgc.collector import preset
from ctxgc.session import RECALL_CALL
from tests.strategies.build import rows, step

FILES = [f"src/pool_{number}.py" for number in range(24)]
CONFIG = GCConfig(
    auto_recall=False, recent_messages=1, recent_files=0, preserve_recent_turns=0,
    # No request is expected to come, so nothing is cut for the price.
    plugin_config={"constants": msgspec.to_builtins(replace(preset("default"), horizon=0))},
)  # fmt: skip


def test_a_file_in_work_leaves_after_the_files_that_are_idle() -> None:
    with Session(200_000, config=CONFIG, store="memory:", recall_call=RECALL_CALL) as session:
        session.append({"role": "user", "content": "Fix the pool."})
        for number, path in enumerate(FILES):
            session.extend(step(number, rows(f"x{number}", 40), path=path))
            session.messages()
        total = session.usage().total_tokens
        heap = session.inspect().heap
        some = session.plan(total - 1_500).candidates
        most = session.plan(total // 10).candidates
        said = [str(candidate.evidence) for candidate in some]
        assert said[0] == "unreachable, no longer file in work for 18 requests"
        assert {why.partition(" for ")[0] for why in said} == {
            "unreachable, no longer file in work"
        }
        assert {heap.get(c.segment_id).file_path for c in some} <= set(FILES[:12])
        assert {heap.get(c.segment_id).file_path for c in most} >= set(FILES[-6:-1])
