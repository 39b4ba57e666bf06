"""Random walks over a session, and a judge that looks only at what a caller can see."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from random import Random
from typing import Any

from ctxgc.budget import InstructionSource, SourceEntry
from ctxgc.config import GCConfig
from ctxgc.core import Format, Message
from ctxgc.errors import ContextOverflowError, InputError, MessageError, PlanError
from ctxgc.session import RECALL_CALL, Session
from ctxgc.stores import open_store
from ctxgc.strategies import BUILT_IN
from ctxgc.testing import check_history, make_session
from ctxgc.tokens import message_tokens
from tests.fakes import Clock
from tests.wire.histories import random_history

Json = dict[str, Any]
Pins = dict[str, list[tuple[str, str]]]

HANDLE = re.compile(r"\bh-[a-z2-7]+")
STRATEGIES = sorted(BUILT_IN)


def faults(session: Session) -> list[str]:
    """Return what is wrong with a session, in words; an empty list when nothing is."""
    view = session.view()
    format_ = session.history[0].format if session.history else "openai"
    # A reasoning item belongs to the item after it, which may still be on its way.
    under_way = bool(view) and view[-1].get("type") == "reasoning"
    judged = view[:-1] if under_way else view
    breaches = check_history(judged, format_, complete=False, ignore=("duplicate_id",))
    found = [str(breach) for breach in breaches] if judged else []
    counter = session.inspect().accounting.counter
    held = sum(message_tokens(m, counter) for m in session.history)
    spoken = sum(child.tokens for child in children(session) if child.message_ids)
    if held != spoken:
        found.append(f"the history holds {held} tokens, the budget says {spoken}")
    found += [
        f"{handle} leads nowhere" for handle in handles(session) if not resolves(session, handle)
    ]
    shown = {message.message_id for message in session.history}
    for segment in session.segments():
        if (segment.tier == "working") and segment.message_id not in shown:
            found.append(f"{segment.segment_id} is at work but its message left")
    for message in session.history:
        working = [
            s.text
            for s in sorted(session.segments(), key=lambda s: s.position)
            if s.tier == "working" and s.message_id == message.message_id
        ]
        if working != [part.text for part in message.parts]:
            found.append(f"the segments of {message.message_id} are not its parts")
    return found


def said(message: Message) -> list[tuple[str, str]]:
    """Return what a message says, part by part, without its thinking."""
    return [(part.kind, part.text) for part in message.parts if part.kind != "thinking"]


def children(session: Session) -> list[SourceEntry]:
    """Return all children of the budget."""
    entries = filter(None, map(session.budget.get_entry, InstructionSource))
    return [child for entry in entries for child in entry.children.values()]


def handles(session: Session) -> list[str]:
    """Return the handles that the view names."""
    return sorted(set(HANDLE.findall(json.dumps(session.view()))))


def resolves(session: Session, handle: str) -> bool:
    """Tell whether a handle can be read."""
    try:
        return bool(session.read(handle)) or True
    except LookupError:
        return False
    except Exception:  # noqa: BLE001 - any error means that the handle is dead
        return False


class Walk:
    """A session that random things happen to; every step is noted, to be read when one fails."""

    def __init__(self, rng: Random, plugin: str, format_: Format, *, limit: int = 1_500) -> None:
        self.rng = rng
        self.format: Format = format_
        self.store = open_store("memory:")
        self.clock = Clock()
        self.plugin = plugin
        self.limit = limit
        self.model = (
            rng.choice(("claude-opus-4-6", "claude-opus-5-5")) if format_ == "anthropic" else None
        )
        self.config = GCConfig(
            auto_recall=False,
            preserve_recent_turns=rng.choice((0, 1, 2)),
            recent_messages=rng.choice((1, 3)),
            recent_user_messages=1,
            max_turns=rng.choice((None, None, 4)),
            pressure_percent=rng.choice((90.0, None)),
            notify_on_gc=rng.random() > 0.5,
        )
        self.session = self._open()
        self.story = _story(rng, format_)
        self.given: list[Json] = []
        self.steps: list[str] = []
        self.pinned: Pins = {}
        self.went_back = False
        """Whether messages were appended to a restored view: a host that does so sends no whole histories."""
        self.saved: list[tuple[str, Pins, list[Json], list[Json], list[Json]]] = []
        """The checkpoints, each with the pins, the view, what was given and the story of its moment."""

    def _open(self) -> Session:
        return Session(
            context_limit=self.limit, config=self.config, plugin=self.plugin, store=self.store,
            session_id="walk", clock=self.clock, model=self.model, recall_call=RECALL_CALL,
        )  # fmt: skip

    def step(self) -> None:
        """Let one random thing happen."""
        action = self.rng.choice(
            (self.append, self.append, self.append, self.send, self.collect, self.recall, self.pin,
             self.unpin, self.undo, self.sync, self.restart, self.plan, self.delete, self.checkpoint,
             self.restore, self.fork)
        )  # fmt: skip
        self.steps.append(action.__name__)
        action()

    def lost_pins(self) -> list[str]:
        """Return the messages that this walk pinned and of which the view does not show all.

        Thinking may be stripped: a provider refuses it after an edit before it.
        """
        here = {message.message_id: said(message) for message in self.session.history}
        return [name for name, parts in self.pinned.items() if here.get(name) != parts]

    def append(self) -> None:
        for message in self.story[len(self.given) : len(self.given) + self.rng.randint(1, 6)]:
            self.session.append(message, format=self.format)
            self.given.append(message)
            self.went_back = self.went_back or "restore" in self.steps

    def send(self) -> None:
        if not self.waiting():
            with suppress(ContextOverflowError):
                self.session.messages()

    def collect(self) -> None:
        self.session.collect(self.rng.choice((None, 0, self.limit // 4, self.limit // 2)))

    def plan(self) -> None:
        before = (self.session.view(), self.session.budget.to_dict())
        self.session.plan(self.limit // 4)
        assert before == (self.session.view(), self.session.budget.to_dict())

    def recall(self) -> None:
        """Recall what a tombstone names, or anything from the stash; it comes back byte for byte."""
        stashed = [s.segment_id for s in self.session.segments() if s.tier == "stashed"]
        found = handles(self.session) or stashed
        if self.rng.random() < 0.3 and stashed:
            found = stashed
        if found:
            chosen = self.rng.choice(found)
            text = self.session.read(chosen)
            # What came in since may leave no room for it; then the view stays as it is.
            with suppress(PlanError):
                assert self.session.recall(chosen).text == text

    def pin(self) -> None:
        # What a collection made leaves with it when it is undone.
        spoken = [m for m in self.session.history if m.origin == "conversation"]
        if spoken:
            self._pin(self.rng.choice(spoken))

    def _pin(self, message: Message) -> None:
        """Pin a message by its own id, or by those of its segments."""
        names = [message.message_id]
        if self.rng.random() < 0.5:
            here = (s for s in self.session.segments() if s.tier == "working")
            names = [s.segment_id for s in here if s.message_id == message.message_id]
        for name in names:
            self.session.pin(name)
        if names and message.origin == "conversation":
            self.pinned[message.message_id] = said(message)

    def unpin(self) -> None:
        pinned = [m.message_id for m in self.session.history]
        if pinned:
            chosen = self.rng.choice(pinned)
            self.session.unpin(chosen)
            self.pinned.pop(chosen, None)

    def checkpoint(self) -> None:
        made = self.session.checkpoint(f"step {len(self.steps)}")
        now = (dict(self.pinned), self.session.view(), list(self.given), self.story)
        self.saved.append((made.checkpoint_id, *now))

    def restore(self) -> None:
        """Go back to a checkpoint: its view byte for byte, and its pins."""
        if not self.saved:
            return
        name, pinned, view, given, story = self.rng.choice(self.saved)
        if name not in {info.checkpoint_id for info in self.session.checkpoints()}:
            return
        self.session.restore(name)
        self.pinned, self.given, self.story = dict(pinned), list(given), story
        assert self.session.view() == view

    def fork(self) -> None:
        """Let the host go on from an earlier message with other words."""
        kept = self.given[: self.rng.randint(0, len(self.given))]
        if self.went_back or len(kept) == len(self.given):
            return
        said = f"Another way, please: {self.rng.random()}"
        parts: Json = {"role": "user", "content": said}
        try:
            self.session.sync([*kept, parts], format=self.format)
        except MessageError:
            return
        self.given = [*kept, parts]
        self.story = [*self.given, *_story(self.rng, self.format)[1:]]
        self._forget_pins()

    def _forget_pins(self) -> None:
        """What a host takes back takes its pins along."""
        here = {message.message_id for message in self.session.history}
        self.pinned = {name: data for name, data in self.pinned.items() if name in here}

    def undo(self) -> None:
        with suppress(PlanError):
            self.session.undo()

    def sync(self) -> None:
        if self.went_back:
            return
        self.session.sync(self.given, format=self.format)
        self._forget_pins()
        before = self.session.view()
        self.session.sync(self.given, format=self.format)
        assert self.session.view() == before

    def restart(self) -> None:
        """Go on in another process: after a good end, or after a crash behind the last save."""
        if self.rng.random() < 0.5 or not self.session.history:
            self.session.close()
        else:
            self._pin(self.session.history[0])
        before = self.seen()
        self.session = self._open()
        assert self.seen() == before

    def seen(self) -> Json:
        """Return what must be the same in another process."""
        return {
            "view": self.session.view(),
            "pins": self.session.usage().pinned_message_ids,
            "tokens": self.session.budget.tokens_by_policy(),
            "born": {c.message_ids: (c.created_at, c.metadata) for c in children(self.session)},
            "history": [result.to_dict() for result in self.session.gc_history],
            "texts": {s.segment_id: (s.text, s.tier) for s in self.session.segments()},
        }

    def delete(self) -> None:
        segments = self.session.segments()
        if segments and self.rng.random() < 0.3:
            with suppress(InputError):
                self.session.delete([self.rng.choice(segments).segment_id], confirm=True)

    def waiting(self) -> bool:
        """Tell whether a call has no answer yet, or reasoning nothing that follows it."""
        waiting: set[str] = set()
        for message in self.session.history:
            waiting |= set(message.calls())
            waiting -= set(message.results())
        last = self.session.history[-1:]
        return bool(waiting) or any(message.data.get("type") == "reasoning" for message in last)


def _story(rng: Random, format_: Format) -> list[Json]:
    """Return a valid history: of the invented agent, or wild."""
    if rng.random() < 0.5:
        seed = rng.randrange(40)
        return make_session(
            seed, 40, format_, thinking=rng.random() < 0.5, reuse_ids=rng.random() < 0.3
        ).messages
    story: list[Json] = []
    while len(story) < 30:
        story += random_history(rng, format_)
    return [
        m for n, m in enumerate(story) if n == 0 or m.get("role") not in ("system", "developer")
    ]
