"""P27: a view names a handle only if its reader has a way to open it, whatever happened to the session."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from ctxgc import GCConfig, Session
from ctxgc.core import FORMATS, Format
from ctxgc.errors import ContextOverflowError, PlanError
from ctxgc.session import RECALL_CALL
from ctxgc.stores import Store, open_store
from ctxgc.testing import check_history
from tests.collector.agent import FIXED, WORDS, Agent, Step
from tests.fakes import Clock, QuarterCounter

OWN = "fetch_again <{handle}>"
"""How a model recalls with a tool of its host's own."""

_NAMED = re.compile(r"\bh-[a-z2-7]{16}\b|\bs-\d+\b")
_CALLS = {
    RECALL_CALL: re.compile(r'context_recall\(handle="([^"]+)"\)'),
    OWN: re.compile(r"fetch_again <([^>]+)>"),
}
_DIGEST = re.compile(r"^\[ctxgc: (s-\d+(?:\.\.\d+)?(?: s-\d+(?:\.\.\d+)?)*)\]", re.MULTILINE)
_WAYS = ("recall(", "context_search", "fetch_again", "To see it again")


class Life:
    """A session that is collected, undone, restored, and reopened by hosts whose models can recall or not."""

    def __init__(self, rng: Random, limit: int, form: Format) -> None:
        self.rng = rng
        self.limit = limit
        self.form: Format = form
        self.store: Store = open_store("memory:")
        self.agent = Agent(form)
        self.clock = Clock()
        self.kept: list[str] = []
        self.named = 0
        self.reader: str | None = None
        """The call that the reader of the view can make now."""
        self.session = self.open()
        self.session.extend(self.agent.begin(), format=form)

    def open(self) -> Session:
        """Reopen the session, by a host that may treat recalls in another way than the one before."""
        way = self.rng.choice(("as before", "as before", "tools", "own", "never"))
        given = {"own": OWN, "never": ""}.get(way)
        config = GCConfig(
            auto_recall=self.rng.random() < 0.5, recent_messages=2, plugin_config=FIXED
        )
        session = Session(
            self.limit, config=config, store=self.store, session_id="life", clock=self.clock,
            counter=QuarterCounter(), recall_call=given,
        )  # fmt: skip
        if way == "tools":
            session.tools(self.form)
        if way != "as before":
            self.reader = {"own": OWN, "tools": RECALL_CALL}.get(way)
        return session

    def step(self, step: Step) -> None:
        """Let the agent do something, and perhaps something happen to the session."""
        said, back = self.agent.step(step)
        self.session.extend([*said, *back], format=self.form)
        with suppress(ContextOverflowError):
            self.check(self.session.messages())
        happens = self.rng.choice(
            (self.collect, self.undo, self.save, self.restore, self.restart, None)
        )
        if happens is not None and self.rng.random() < 0.6:
            happens()
        self.check(self.session.view())
        self.check(json.loads(self.session.messages_json()))

    def collect(self) -> None:
        self.session.collect(self.session.usage().total_tokens * self.rng.randint(3, 9) // 10)

    def undo(self) -> None:
        with suppress(PlanError):
            self.session.undo()

    def save(self) -> None:
        self.kept.append(self.session.checkpoint("kept").checkpoint_id)

    def restore(self) -> None:
        if self.kept:
            self.session.restore(self.rng.choice(self.kept))

    def restart(self) -> None:
        self.session.close()
        self.session = self.open()

    def check(self, view: list[dict[str, Any]]) -> None:
        """Every handle in a view is named by a call that its reader can make, and that call answers."""
        assert check_history(view, self.form) == []
        text = "\n".join(_texts(view))
        if self.reader is None:
            assert _NAMED.findall(text) == []
            assert [way for way in _WAYS if way in text] == []
            return
        called = _CALLS[self.reader].findall(text)
        listed = [name for names in _DIGEST.findall(text) for name in re.findall(r"s-\d+", names)]
        assert set(_NAMED.findall(text)) <= {*called, *listed}
        for handle in {*called, *listed}:
            assert self.session.read(handle)
        self.named += len(called)


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for each in inside for text in _texts(each)]


def _step(rng: Random) -> Step:
    path, first = rng.randint(0, 2), rng.choice((0, 0, 10))
    read: Step = ("read", path, first, rng.choice((30, 60)))
    others: list[Step] = [
        ("both", path, first, 40), ("test", 40), ("grep", rng.choice(WORDS), 30),
        ("edit", path, first), ("say", rng.choice(WORDS)),
    ]  # fmt: skip
    return rng.choice([read, read, *others])


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("limit", [4_000, 12_000, 200_000])
def test_no_view_names_a_handle_that_its_reader_cannot_open(limit: int, form: Format) -> None:
    named = 0
    for seed in range(4):
        life = Life(Random(f"{limit}-{form}-{seed}"), limit, form)
        for _ in range(30):
            life.step(_step(life.rng))
        named += life.named
    assert named, "no view named a handle, so nothing was tried"
