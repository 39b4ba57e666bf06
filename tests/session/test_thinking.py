"""Signed thinking: whatever happens to a view, the provider takes every thinking block that it shows."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ctxgc.errors import ContextOverflowError, InputError, PlanError
from ctxgc.session import Session
from ctxgc.testing import ThinkingSignatures, check_history
from ctxgc.testing.checker_anthropic import check
from ctxgc.wire import Overflow
from tests.examples import one_in
from tests.session.build import make

Json = dict[str, Any]

ACTIONS = (
    "ask", "ask", "work", "work", "collect", "recall", "undo", "undo", "delete", "restart",
    "checkpoint", "restore", "recover",
)  # fmt: skip


class Thinker:
    """An agent that thinks before each step, and the server that signs and judges its thinking."""

    def __init__(self, **options: Any) -> None:
        self.options = {
            "model": "claude-opus-5-5", "recent_messages": 2, "recent_user_messages": 1,
            "recent_files": 0, "preserve_recent_turns": 1, "session_id": "thinker", **options,
        }  # fmt: skip
        self.session: Session = make(1_500, **self.options)
        self.options["store"] = self.session.inspect().archive.store
        self.book = ThinkingSignatures()
        self.steps = 0

    def ask(self, number: int) -> None:
        """Let a user ask and the agent answer."""
        content = f"request {self.steps} " + "word " * (20 + number)
        self.session.append({"role": "user", "content": content}, format="anthropic")
        self._answer({"type": "text", "text": "word " * 30 + f"answer {self.steps}"})

    def work(self, number: int) -> None:
        """Let a user ask and the agent read a file before it answers."""
        self.session.append({"role": "user", "content": f"do {self.steps}"}, format="anthropic")
        call = {"id": f"c{self.steps}", "name": "read", "input": {"path": f"f{number % 5}.py"}}
        if not self._answer({"type": "tool_use", **call}):
            return
        text = "\n".join(f"line {n} of {self.steps}" for n in range(20 + number))
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": text}
        self.session.append({"role": "user", "content": [result]}, format="anthropic")
        self._answer({"type": "text", "text": f"done {self.steps}"})

    def collect(self, number: int) -> None:
        self.session.collect(number * 30)

    def recall(self, number: int) -> None:
        stashed = [s.segment_id for s in self.session.segments() if s.tier == "stashed"]
        if stashed:
            with suppress(PlanError):
                self.session.recall(stashed[number % len(stashed)])

    def undo(self, _: int) -> None:
        with suppress(PlanError):
            self.session.undo()

    def delete(self, number: int) -> None:
        segments = self.session.segments()
        if segments:
            with suppress(InputError):
                self.session.delete([segments[number % len(segments)].segment_id], confirm=True)

    def checkpoint(self, _: int) -> None:
        self.session.checkpoint()

    def restore(self, number: int) -> None:
        known = self.session.checkpoints()
        if known:
            self.session.restore(known[number % len(known)].checkpoint_id)

    def recover(self, number: int) -> None:
        size = self.session.usage().total_tokens
        with suppress(ContextOverflowError, InputError):
            self.session.recover(Overflow(kind="tokens", used=size, limit=size * number // 50))

    def restart(self, _: int) -> None:
        self.session.flush()
        self.session = make(1_500, **self.options)

    def refused(self) -> list[str]:
        """Return what the provider would refuse of the view."""
        view = self.session.view()
        breaches = check_history(view, "anthropic") if view else []
        return [str(each) for each in (*breaches, *self.book.check({"messages": view}))]

    def thoughts(self) -> int:
        """Return how many thinking blocks the view shows."""
        blocks = [b for m in self.session.view() for b in m["content"] if isinstance(b, dict)]
        return sum(block["type"] == "thinking" for block in blocks)

    def _answer(self, block: Json) -> bool:
        try:
            body = {"messages": self.session.messages()}
        except ContextOverflowError:
            return False
        # The stricter of the two ways to think.
        asked = {**body, "thinking": {"type": "enabled", "budget_tokens": 1_024}}
        assert [str(each) for each in check(asked, signatures=self.book)] == []
        self.steps += 1
        thought = f"thought {self.steps}"
        signature = self.book.sign(thought, body)
        blocks = [{"type": "thinking", "thinking": thought, "signature": signature}, block]
        self.book.remember(blocks)
        self.session.append({"role": "assistant", "content": blocks}, format="anthropic")
        return True


def worked(**options: Any) -> Thinker:
    """Return an agent that has thought twice in each of six turns."""
    thinker = Thinker(**options)
    for number in range(6):
        thinker.work(number)
    return thinker


walks = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 40)), min_size=6, max_size=30)


@one_in(4)
@given(walks, st.sampled_from(["gc_truncate", "gc_mark_sweep", "gc_budget"]))
def test_the_provider_takes_every_view_of_a_walk(walk: list[tuple[str, int]], plugin: str) -> None:
    thinker = worked(plugin=plugin)
    for action, number in walk:
        getattr(thinker, action)(number)
        assert thinker.refused() == [], action


def test_a_loop_whose_calls_lost_their_thinking_is_ended_before_the_next_request() -> None:
    thinker = Thinker(plugin="gc_truncate")
    for number in range(3):
        thinker.work(number)
    session = thinker.session
    session.append({"role": "user", "content": "do more"}, format="anthropic")
    call = {"type": "tool_use", "id": "open", "name": "read", "input": {"path": "g.py"}}
    assert thinker._answer(call)
    result = {"type": "tool_result", "tool_use_id": "open", "content": "line 1"}
    session.append({"role": "user", "content": [result]}, format="anthropic")
    session.collect(0)
    last = session.view()[-2:]
    view = session.messages()
    assert view[-4:-2] == last == [
        {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}
    ]  # fmt: skip
    assert [message["role"] for message in view[-2:]] == ["assistant", "user"]
    assert view == session.messages()
    assert thinker._answer({"type": "text", "text": "done"})


def test_undo_gives_the_thinking_back_but_not_what_was_thought_since() -> None:
    thinker = worked(plugin="gc_truncate")
    before = thinker.session.view()
    thinker.collect(0)
    thinker.ask(0)
    thinker.restart(0)
    thinker.undo(0)
    view = thinker.session.view()
    assert view[: len(before)] == before
    assert [len(message["content"]) for message in view[len(before) + 1 :]] == [1]
    assert thinker.refused() == []


def test_undo_shows_no_thinking_behind_what_was_recalled_since() -> None:
    thinker = worked(plugin="gc_truncate")
    thinker.collect(0)
    thinker.ask(0)
    thinker.collect(0)
    thinker.recall(0)
    thinker.undo(0)
    assert thinker.refused() == []
    thinker.undo(0)
    assert (thinker.refused(), thinker.thoughts()) == ([], 12)


def test_what_stays_behind_a_loaded_checkpoint_shows_no_thinking() -> None:
    thinker = worked(plugin="gc_truncate")
    thinker.checkpoint(0)
    thinker.collect(0)
    thinker.ask(0)
    thinker.session.pin(thinker.session.history[-1].message_id)
    assert thinker.session.inspect().recoverable.load_last_checkpoint()
    assert (thinker.refused(), thinker.thoughts()) == ([], 12)


def test_the_last_turn_has_all_of_its_thinking_or_none() -> None:
    thinker = worked(plugin="gc_truncate")
    thinker.checkpoint(0)
    thinker.work(0)
    thinker.restore(0)
    (call,) = [
        s for s in thinker.session.segments() if s.call_id == "c12" and s.part == "tool_call"
    ]
    thinker.session.recall(call.segment_id)
    roles = [message["role"] for message in thinker.session.view()]
    assert roles[-3:] == ["assistant", "assistant", "user"]
    assert (thinker.refused(), thinker.thoughts()) == ([], 11)
