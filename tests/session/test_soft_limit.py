"""Above the soft limit a session takes small steps: at most `batch` results, and only where that pays."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from ctxgc import GCConfig, Session
from ctxgc.session import RECALL_CALL
from ctxgc.testing import check_history
from tests.collector.agent import HOW
from tests.requirements import requirement

LIMIT = 20_000
PATIENT = {"constants": msgspec.to_builtins(replace(HOW, work_hold=2, patience=1e9))}
"""While there is room nothing costs enough to be cut for the price alone."""


def _filled(soft: float, batch: int = 20, **options: object) -> Session:
    """Return a session that an agent has filled to just below the threshold, request by request."""
    config = GCConfig(
        soft_limit_percent=soft, batch=batch, auto_recall=False, plugin_config=options or PATIENT
    )
    session = Session(LIMIT, config=config, store="memory:", recall_call=RECALL_CALL)
    session.append({"role": "user", "content": "Find out which of the modules is slow."})
    number = 0
    while session.usage().percent_used < 72:
        call = {"name": "bash", "arguments": f'{{"command": "git log -{number}"}}'}
        calls = [{"id": f"c{number}", "type": "function", "function": call}]
        session.append({"role": "assistant", "content": None, "tool_calls": calls})
        rest = [f"in step {n} run {number} went on and took its time" for n in range(60)]
        said = "\n".join([f"probe_{number}", *rest])
        session.append({"role": "tool", "tool_call_id": f"c{number}", "content": said})
        session.messages()
        number += 1
    return session


@requirement("S0.incremental.soft-limit")
def test_nothing_leaves_below_the_soft_limit() -> None:
    assert _filled(79).gc_history == []


@requirement("S0.incremental.batch")
def test_a_step_takes_at_most_a_batch() -> None:
    for batch in (3, 5):
        steps = _filled(30, batch).gc_history
        assert steps
        assert all(0 < len(step.removal_list) <= batch for step in steps)


def test_a_step_pays_for_itself_and_leaves_a_valid_view() -> None:
    session = _filled(30)
    assert check_history(session.view(), "openai") == []
    assert session.gc_history
    for step in session.gc_history:
        assert {item.evidence.kind for item in step.removal_list if item.evidence} == {"idle"}
        assert step.details["tokens_won"] == step.tokens_freed > 0
    stashed = [s for s in session.inspect().heap if s.tier == "stashed"]
    assert all(
        session.read(session.inspect().stash.handle(s.segment_id)) == s.text for s in stashed
    )


def test_whoever_does_not_want_cuts_for_the_price_gets_no_steps() -> None:
    assert _filled(30, preset="off").gc_history == []
