"""A session as the guard sees it: what it keeps, what it gives up, what it comes back to."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from ctxgc import GCConfig, GCPolicy, Session
from ctxgc.core import Format
from ctxgc.errors import ContextOverflowError, InputError, PlanError
from ctxgc.session import RECALL_CALL
from ctxgc.stores import Put, open_store
from ctxgc.testing import check_history, make_session
from ctxgc.wire import Overflow
from tests.session.random_walk import Walk, faults, handles

LIMIT = 10_000


def words(count: int, about: str = "word") -> str:
    return f"{about} " * count


def session(**options: Any) -> Session:
    """Return a session of three small turns, ready to be sent."""
    given: dict[str, Any] = {"store": "memory:", "plugin": "gc_truncate"}
    made = Session(LIMIT, **{**given, **options})
    for number in range(3):
        made.append({"role": "user", "content": f"ask {number}"})
        made.append({"role": "assistant", "content": f"reply {number}"})
    made.append({"role": "user", "content": "and now?"})
    return made


def texts(made: Session) -> list[str]:
    return [str(message["content"]) for message in made.view()]


def refusal(made: Session, share: float) -> Overflow:
    """Return a provider's word that only a share of what was sent fits."""
    size = made.usage().total_tokens
    return Overflow(kind="tokens", used=size, limit=int(size * share))


def test_a_refusal_makes_the_view_strictly_smaller_down_to_the_essentials() -> None:
    made = session()
    made.messages()
    before = made.usage().total_tokens
    report = made.recover(refusal(made, 0.6))
    assert (report.size_before, report.size_after) == (before, made.usage().total_tokens)
    assert report.size_after <= int(before * 0.6)
    assert texts(made) == ["ask 0", "reply 2", "and now?"]
    assert faults(made) == []


def test_three_retries_and_no_more() -> None:
    made = session()
    for number in range(20):
        made.append({"role": "assistant", "content": words(60, f"w{number}")})
        made.append({"role": "user", "content": "more"})
    made.messages()
    sizes = [made.usage().total_tokens]
    with pytest.raises(ContextOverflowError):  # noqa: PT012 - it is not known which of them raises
        for _ in range(4):
            made.recover(Overflow(kind="tokens", used=None, limit=None))
            sizes.append(made.usage().total_tokens)
    assert len(sizes) <= 4
    assert sizes == sorted(set(sizes), reverse=True)


def test_the_retries_of_one_call_are_counted_together_and_a_new_message_starts_a_new_call() -> None:
    made = session()
    for number in range(20):
        made.append({"role": "assistant", "content": words(60, f"w{number}")})
        made.append({"role": "user", "content": "more"})
    made.messages()
    for _ in range(3):
        made.recover(refusal(made, 0.95))
        made.messages()
    with pytest.raises(ContextOverflowError, match="3 retries were refused"):
        made.recover(refusal(made, 0.95))
    made.append({"role": "assistant", "content": "at last"})
    made.append({"role": "user", "content": "again"})
    made.messages()
    before = made.usage().total_tokens
    assert made.recover(refusal(made, 0.95)).size_after < before


def test_a_session_that_never_collects_by_itself_leaves_a_refused_view_alone() -> None:
    made = session(config=GCConfig(auto_trigger=False))
    sent = made.messages()
    with pytest.raises(ContextOverflowError, match="auto_trigger=False") as caught:
        made.recover(refusal(made, 0.6))
    assert made.view() == sent
    assert made.gc_history == []
    assert "collect by hand" in (caught.value.hint or "")


def test_a_refusal_of_what_was_never_sent_is_an_error() -> None:
    with pytest.raises(InputError, match="nothing was sent"):
        session().recover(Overflow(kind="tokens", used=2, limit=1))


def test_pins_and_locked_messages_are_in_every_view_that_is_left() -> None:
    made = session()
    pinned, locked = made.history[2].message_id, made.history[3].message_id
    made.pin(pinned)
    made.set_policy(locked, GCPolicy.LOCKED)
    made.messages()
    made.recover(refusal(made, 0.8))
    assert texts(made) == ["ask 0", "ask 1", "reply 1", "reply 2", "and now?"]
    with pytest.raises(ContextOverflowError) as caught:
        made.recover(refusal(made, 0.2))
    assert {"ask 0", "ask 1", "reply 1", "and now?"} <= set(texts(made))
    assert {part["tokens"] for part in caught.value.details["parts"]} != set()


def test_the_last_checkpoint_comes_back_with_the_newest_request_and_later_pins() -> None:
    made = session()
    made.checkpoint("good")
    made.append({"role": "assistant", "content": "pin me"})
    made.append({"role": "user", "content": "then"})
    made.append({"role": "assistant", "content": words(3_000, "endless")})
    made.append({"role": "user", "content": "newest"})
    pinned = made.history[7].message_id
    made.pin(pinned)
    made.messages()
    report = made.recover(refusal(made, 0.1))
    assert [action.name for action in report.actions if action.ok][-3:] == [
        "load checkpoint",
        "aggressive pruning",
        "validate",
    ]
    assert said(made) == ["ask 0", "pin me", "newest"]
    assert pinned in made.usage().pinned_message_ids
    assert faults(made) == []


def said(made: Session) -> list[str]:
    """Return the texts of the view but those of notices."""
    return [message.text() for message in made.history if message.origin != "gc_notice"]


def test_a_damaged_checkpoint_is_passed_over() -> None:
    store = open_store("memory:")
    made = session(store=store, session_id="s")
    made.checkpoint("good")
    bad = made.checkpoint("bad").checkpoint_id
    doc = store.get("s", "checkpoints", bad) or {}
    made.append({"role": "assistant", "content": words(3_000, "endless")})
    made.append({"role": "user", "content": "newest"})
    made.messages()
    made.flush()
    store.commit("s", [Put("checkpoints", bad, {**doc, "label": "worse"})])
    fresh = Session(LIMIT, store=store, session_id="s", plugin="gc_truncate")
    fresh.messages()
    fresh.recover(refusal(fresh, 0.1))
    assert said(fresh) == ["ask 0", "newest"]


def test_a_checkpoint_with_an_open_call_is_not_what_a_request_goes_back_to() -> None:
    made = session()
    made.checkpoint("good")
    function = {"name": "bash", "arguments": "{}"}
    calls = [{"id": "c1", "type": "function", "function": function}]
    made.append({"role": "assistant", "content": None, "tool_calls": calls})
    made.checkpoint("in the middle of a call")
    made.append({"role": "tool", "tool_call_id": "c1", "content": words(3_000, "endless")})
    made.append({"role": "user", "content": "newest"})
    made.messages()
    made.recover(refusal(made, 0.1))
    assert said(made) == ["ask 0", "newest"]


def test_thinking_behind_a_cut_is_stripped() -> None:
    made = Session(LIMIT, store="memory:", model="claude-opus-4-5", plugin="gc_truncate")
    thinking = {"type": "thinking", "thinking": "hm", "signature": "sig"}
    for number in range(4):
        made.append({"role": "user", "content": f"ask {number}"}, format="anthropic")
        content = [thinking, {"type": "text", "text": f"reply {number}"}]
        made.append({"role": "assistant", "content": content}, format="anthropic")
    made.append({"role": "user", "content": "and now?"}, format="anthropic")
    made.messages()
    made.recover(refusal(made, 0.6))
    assert check_history(made.view(), "anthropic") == []
    assert faults(made) == []


class GuardedWalk(Walk):
    """A random walk with more checkpoints and restores, which also collects the stash."""

    def __init__(self, rng: Random, format_: Format) -> None:
        super().__init__(rng, "gc_mark_sweep", format_, limit=3_000)
        self.story = make_session(rng.randrange(40), 40, format_).messages

    def step(self) -> None:
        """Let one random thing happen."""
        mine = (self.checkpoint, self.restore, self.gc)
        act = self.rng.choice((*mine, *(super().step,) * 6))
        self.steps.append(act.__name__)
        try:
            act()
        except (ContextOverflowError, PlanError) as error:
            self.steps.append(error.code)

    def gc(self) -> None:
        self.session.collect_stash(max_bytes=self.rng.choice((1, 2_000)))


@pytest.mark.parametrize("format_", ["openai", "responses", "anthropic"])
@pytest.mark.parametrize("seed", range(4))
def test_every_handle_of_every_view_resolves_after_every_step(seed: int, format_: Format) -> None:
    walk = GuardedWalk(Random(f"{seed}{format_}"), format_)
    for _ in range(60):
        walk.step()
        assert faults(walk.session) == [], walk.steps


def test_a_walk_meets_handles_checkpoints_and_overflows() -> None:
    """The walks above would prove nothing if they never got there."""
    steps: set[str] = set()
    named: set[str] = set()
    for seed in range(4):
        walk = GuardedWalk(Random(seed), "openai")
        for _ in range(60):
            walk.step()
            named.update(handles(walk.session))
        steps.update(walk.steps)
    assert named
    assert {"checkpoint", "restore", "gc", "collect", "recall"} <= steps


def test_nothing_comes_back_between_a_call_and_its_result() -> None:
    made = Session(LIMIT, store="memory:")
    function = {"name": "bash", "arguments": "{}"}
    calls = [{"id": "c1", "type": "function", "function": function}]
    made.append({"role": "user", "content": "ask"})
    made.append({"role": "assistant", "content": None, "tool_calls": calls})
    checkpoint = made.checkpoint()
    made.append({"role": "tool", "tool_call_id": "c1", "content": "ok"})
    (later,) = made.append({"role": "assistant", "content": "later"})
    made.restore(checkpoint.checkpoint_id)
    before = made.view()
    with pytest.raises(PlanError, match="the view would be invalid"):
        made.recall(later)
    assert made.read(later) == "later"
    assert made.view() == before


def test_a_session_works_on_after_a_recovery() -> None:
    made = session(config=GCConfig())
    made.messages()
    made.recover(refusal(made, 0.6))
    made.append({"role": "assistant", "content": "going on"})
    made.append({"role": "user", "content": "next"})
    assert [m["content"] for m in made.messages()][-2:] == ["going on", "next"]


@pytest.mark.parametrize("plugin", ["gc_truncate", "gc_budget", "gc_hybrid", "gc_mark_sweep"])
def test_what_a_checkpoint_knows_and_was_pinned_after_it_stays_pinned(plugin: str) -> None:
    session = Session(
        3_000,
        store="memory:",
        plugin=plugin,
        config=GCConfig(auto_recall=False),
        recall_call=RECALL_CALL,
    )
    for number in range(6):
        session.append({"role": "user", "content": f"q{number}"})
        session.append({"role": "assistant", "content": f"a{number} " + "word " * 460})
    session.messages()
    pinned = session.history[-5].message_id
    session.pin(pinned)
    call = {"id": "c", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    session.append({"role": "user", "content": "go"})
    session.append({"role": "assistant", "content": None, "tool_calls": [call]})
    session.append({"role": "tool", "tool_call_id": "c", "content": "word " * 3_500})
    session.append({"role": "assistant", "content": "ok"})
    session.messages()
    assert pinned in {message.message_id for message in session.history}
    assert pinned in session.inspect().state.pinned_messages
