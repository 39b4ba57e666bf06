"""Sessions for tests, in memory, with a word counter and a clock of their own; a strategy and a store that
interfere; and an agent that asks for everything back."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from ctxgc.collector import preset
from ctxgc.config import GCConfig
from ctxgc.errors import StoreError
from ctxgc.session import RECALL_CALL, Event, Session
from ctxgc.stores import MemoryStore
from ctxgc.strategies.truncate import TruncateStrategy
from tests.collector.agent import opened
from tests.fakes import Clock, WordCounter
from tests.strategies.build import turn

Json = dict[str, Any]

QUESTION = {"role": "user", "content": "And now?"}


def make(limit: int = 2_000, plugin: Any = "gc_truncate", **options: Any) -> Session:
    """Return a session in memory; keys of GCConfig may be given beside those of Session."""
    keys = set(options) & set(GCConfig.__struct_fields__)
    config = GCConfig(**{"auto_recall": False, **{key: options.pop(key) for key in keys}})
    return Session(
        limit,
        plugin=plugin,
        config=config,
        **{
            "recall_call": RECALL_CALL,
            "store": "memory:",
            "counter": WordCounter(),
            "clock": Clock(),
            **options,
        },
    )


def filled(turns: int = 10, size: int = 50, *, tools: int = 0, **options: Any) -> Session:
    """Return a session with so many turns in it."""
    session = make(**options)
    for number in range(turns):
        session.extend(turn(number, size, tools=tools))
    return session


def events_of(session: Session) -> list[Event]:
    """Return a list that every event of the session is added to."""
    seen: list[Event] = []
    session.events(seen.append)
    return seen


def state_of(session: Session) -> Json:
    """Return everything about a session that a refused change must leave alone."""
    return {
        "view": session.view(),
        "budget": session.budget.to_dict(),
        "segments": session.segments(),
        "pins": session.usage().pinned_message_ids,
    }


def requests_in(session: Session) -> list[int]:
    """Return the numbers of the requests in the view."""
    texts = [m.text() for m in session.history if m.text().startswith("request ")]
    return [int(text.split()[1]) for text in texts]


class Interfering(TruncateStrategy):
    """A strategy that does something of its own before it collects."""

    def __init__(self, act: Any) -> None:
        super().__init__()
        self._act = act

    def collect(self, *given: Any, **more: Any) -> Any:
        """Collect, after something else."""
        self._act()
        return super().collect(*given, **more)


class Flaky(MemoryStore):
    """Refuses a commit on demand; `commits` counts all that were asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.commits = 0
        self.fails_at = -1

    def commit(self, *given: Any, **more: Any) -> int:
        """Write a batch, or refuse it."""
        self.commits += 1
        if self.commits == self.fails_at:
            raise StoreError("the disk is full")
        return super().commit(*given, **more)

    def fail_next(self) -> None:
        """Refuse the next commit, and only that."""
        self.fails_at = self.commits + 1


class Insistent:
    """An agent that asks at once for all that left since it asked last."""

    def __init__(self, session: Session, *, most: int = 99) -> None:
        self.session = session
        self.most = most
        self.seen = 0

    def __call__(self, _: int) -> None:
        inside = self.session.inspect()
        new = inside.log.applied[self.seen :]
        back = [m.message_id for record in new for m in record.before][: self.most]
        for message_id in back:
            left = inside.view.originals.get(message_id)
            if left is not None:
                gone = [i for i in left.segment_ids if inside.heap.get(i).tier == "stashed"]
                self.session.recall(gone[0])
        self.seen = len(inside.log.applied)


def reckless(**options: Any) -> Session:
    """Return a session that ignores the price of its recalls and what they teach."""
    how = msgspec.to_builtins(replace(preset("default"), guard=1e9, patience=0.0, hold=0))
    return opened(recall_hold_collections=0, plugin_config={"constants": how}, **options)
