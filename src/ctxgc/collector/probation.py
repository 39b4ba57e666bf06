"""Probation: a collection for the price that is planned, watched for some steps, and only then carried out.

A `Probation` is such a plan: what would leave, and what of it was used meanwhile and so stays. It knows
messages by their ids, so that it goes on after a restart. A `Certificate` is what is known of it in the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from ctxgc.collector.reader import Item, Reader, source
from ctxgc.collector.worth import Census, Holding, PriceCover, partly
from ctxgc.core import LONG_LINE, Message, mask_secrets

# -- What is known of a plan


UseKind = Literal["named", "read again", "quoted"]


class PlannedExit(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a message that would leave, and by what right."""

    message_id: str
    part: int
    why: str


class NotedUse(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a message that would have left and was used before that, so it stays.

    `request` is the one whose answer used it: a call `named` its file, the same was `read again`, or
    `quoted` things of it that the view has nowhere else. `missed` are those that its stub would not have had.
    """

    message_id: str
    part: int
    request: int
    how: UseKind
    quoted: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()


class Probation(msgspec.Struct, frozen=True, kw_only=True):
    """A plan on probation.

    Attributes:
        planned_at: the request before which it was made.
        steps: how many answers of the agent it waits for; `waited`: how many came in since.
        planned: how many parts of messages it would have shortened.
        exits: those that it still would.
        read: how many messages of the view were looked at for uses.
        used: what was used by them.
    """

    planned_at: int
    steps: int
    planned: int
    exits: tuple[PlannedExit, ...]
    read: int
    waited: int = 0
    used: tuple[NotedUse, ...] = ()

    def read_to(self, place: int) -> Probation:
        """Return it with all messages from a place on to be looked at again."""
        return self if self.read <= place else replace(self, read=place)

    def sources(self) -> frozenset[str]:
        """Return the names of the parts that would leave."""
        return frozenset(source(each.message_id, each.part) for each in self.exits)

    @property
    def is_over(self) -> bool:
        """Whether it has waited long enough."""
        return self.waited >= self.steps

    def certificate(self, request: int, left: Iterable[str], *, at_once: str = "") -> Certificate:
        """Return what is known when a collection of these messages closes it before a request."""
        return Certificate(
            planned_at=self.planned_at,
            applied_at=request,
            steps=self.steps,
            waited=self.waited,
            planned=self.planned,
            used=self.used,
            left=tuple(left),
            at_once=at_once,
        )


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """What a collection can show for itself.

    Attributes:
        planned_at: the request before which it was planned; `applied_at`: that before which it was applied.
        steps: how many answers of the agent it had to wait for; `waited`: how many it did.
        planned: how many parts of messages it would have shortened at first.
        used: those that were used meanwhile, and stayed.
        left: the messages that left or were shortened.
        at_once: why it did not wait any longer (`room` had to be made, or `by hand`); empty if it did.
    """

    planned_at: int
    applied_at: int
    steps: int
    waited: int
    planned: int
    used: tuple[NotedUse, ...] = ()
    left: tuple[str, ...] = ()
    at_once: str = ""

    @property
    def missed(self) -> tuple[str, ...]:
        """What would have been missed if it had been applied when it was planned."""
        return tuple(dict.fromkeys(thing for use in self.used for thing in use.missed))

    def described(self) -> Iterator[str]:
        """Yield it in words, line by line."""
        waited = f"waited {self.waited} of {self.steps} steps"
        end = f"applied at once: {self.at_once}" if self.at_once else "applied"
        yield f"planned at request {self.planned_at}, {waited}, {end} at request {self.applied_at}"
        yield f"of {self.planned} planned, {len(self.used)} were used meanwhile and stayed"
        for use in self.used:
            yield f"  message {use.message_id}: {_said(use)} by the answer to request {use.request}"
        missed = ", ".join(thing.strip() for thing in self.missed)
        yield f"would have been missed: {missed or 'nothing'}"


def _said(use: NotedUse) -> str:
    return f"quoted ({len(use.quoted)})" if use.how == "quoted" else use.how


# -- Uses: what came in since a plan was made, and what of the plan it used


Stub = Callable[[Item, str, Census], PriceCover]
"""What would stay of an item that leaves by some right, in a view with such a census."""
_SHORTEST_VALUE = 6


class News:
    """What came in since a plan was last looked at: who says what in it."""

    def __init__(self, reader: Reader, messages: Sequence[Message]) -> None:
        known = [reader.known[message.message_id] for message in messages]
        self.holdings = [holding for each in known for holding in each.holdings]
        answers = [each for each in known if each.message.role == "assistant"]
        self.has_answer = bool(answers)
        self.said = _things(holding for each in answers for holding in each.holdings)
        self.text = "\n".join(part.text for each in answers for part in each.message.parts)
        self.holders = Counter(thing for each in self.holdings for thing in _held(each) & self.said)


def _held(holding: Holding) -> frozenset[str]:
    return holding.names | holding.keys


def _things(holdings: Iterable[Holding]) -> frozenset[str]:
    return frozenset[str]().union(*map(_held, holdings))


def looked_at(
    plan: Probation, reader: Reader, view: Sequence[Message], request: int, stub: Stub
) -> Probation:
    """Return a plan without what the messages used that came in since it was last looked at."""
    news = News(reader, view[plan.read :])
    found = {each: _item(reader, each) for each in plan.exits}
    open_items = [item for item in found.values() if item is not None]
    uses = [
        use
        for each, item in found.items()
        if item is not None
        and (use := _use(each, item, _Scene(plan, reader, news, open_items, request, stub)))
    ]
    gone = {(use.message_id, use.part) for use in uses}
    stay = [e for e, item in found.items() if item and (e.message_id, e.part) not in gone]
    return replace(
        plan,
        exits=tuple(stay),
        read=len(view),
        waited=plan.waited + news.has_answer,
        used=(*plan.used, *uses),
    )


class _Scene(msgspec.Struct, frozen=True):
    """What a use is found in."""

    plan: Probation
    reader: Reader
    news: News
    items: Collection[Item]
    request: int
    stub: Stub

    def is_only_planned(self, thing: str) -> bool:
        """Tell whether nothing holds a thing but what would leave, and what came in just now."""
        census = self.reader.census
        holders = census.names[thing] + census.keys[thing] - self.news.holders[thing]
        return holders <= sum(thing in _held(item.holding()) for item in self.items)


def _item(reader: Reader, planned: PlannedExit) -> Item | None:
    known = reader.known.get(planned.message_id)
    found = [i for i in known.items if i.part == planned.part] if known is not None else []
    return found[0] if found and found[0].stubbed_at is None else None


def _use(planned: PlannedExit, item: Item, scene: _Scene) -> NotedUse | None:
    """Return how the news used an item; None if they did not."""
    since, quoted = scene.plan.planned_at, _quoted(item, scene)
    if item.rerun_at >= since or item.born > since:
        how: UseKind = "read again"
    elif scene.reader.clues.last_named(item) >= since:
        how = "named"
    elif quoted:
        how = "quoted"
    else:
        return None
    missed = _missed(planned, item, quoted, scene) if quoted else []
    return NotedUse(
        message_id=planned.message_id,
        part=planned.part,
        request=scene.request - 1,
        how=how,
        quoted=tuple(map(mask_secrets, quoted)),
        missed=tuple(map(mask_secrets, missed)),
    )


def _quoted(item: Item, scene: _Scene) -> list[str]:
    """Return what the agent said that only an item holds: names, lines, and values in what was gathered."""
    both = scene.news.said & _held(item.holding())
    lines, text = item.text, scene.news.text
    short = (lines.bare[n] for n in item.shown if item.call.gathers and lines.has_value(n))
    values = {bare for bare in short if _SHORTEST_VALUE <= len(bare) < LONG_LINE and bare in text}
    return sorted({*filter(scene.is_only_planned, both), *values})


def _missed(planned: PlannedExit, item: Item, quoted: Sequence[str], scene: _Scene) -> list[str]:
    """Return what of it the stub would not have had, made before the news came."""
    census = scene.reader.census.copy()
    for holding in scene.news.holdings:
        census.leave(holding)
    stub = scene.stub(item, planned.why, census)
    shown = {*_held(partly(item.text, stub.kept)), *stub.listed}
    shown |= {item.text.bare[line] for line in stub.kept}
    return [thing for thing in quoted if thing not in shown]
