"""The judge: plays a task through a policy, and looks in each view for what its answer needs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import msgspec

from ctxgc.core import Format
from ctxgc.economics import PriceSheet
from ctxgc.lab.facts import shape_of
from ctxgc.lab.gather.stage import Need
from ctxgc.lab.gather.tasks import GatherTask, TaskPlan, TaskUse, make_task
from ctxgc.lab.needs import SentMessage, SentMessages, ViewReader
from ctxgc.lab.policies import Player, Policy, PolicyTask
from ctxgc.lab.regimes import head_of
from ctxgc.lab.replay import RequestPricer, unpruned_bill
from ctxgc.lab.runs import Run
from ctxgc.wire import parse

Place = Literal["view", "recall", "lost"]
Room = Literal["all", "needed", "nothing"]
_NATIVE = ("ours", "base")
_OUR_NOTE = re.compile(r"^(?=\[ctxgc:)", re.MULTILINE)


class TaskResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one policy did to one task.

    Needs are in the `view` of the request that used them, one `recall` away, or `lost`. A request over
    the window ends a task: what it and later answers need is lost. `fits` says whether what one answer
    needs fits the window, with the head and the last exchange. `bill` and `unpruned` are in uncached
    input tokens; `recall_cost` is the part of the bill that the requests after recalls make.
    """

    plan: TaskPlan
    policy: str
    tokens: int
    needed: int
    requests: int
    unpruned: float
    needs: int
    view: int = 0
    recall: int = 0
    lost: int = 0
    recalls: int = 0
    recall_tokens: int = 0
    recall_cost: float = 0.0
    bill: float = 0.0
    over: bool = False
    missed: tuple[Need, ...] = ()
    error: str = ""

    @property
    def fits(self) -> bool:
        """Whether what the answers need fits the window."""
        return self.needed <= self.plan.window

    @property
    def room(self) -> Room:
        """What fits the window: all that came in, or only what the answers need, or not even that."""
        if self.tokens <= self.plan.window:
            return "all"
        return "needed" if self.fits else "nothing"

    @property
    def from_view(self) -> bool:
        """Whether every answer had all that it needs in its view."""
        return self.view == self.needs

    @property
    def one_recall(self) -> bool:
        """Whether at most one recall in the whole task was enough."""
        return not self.lost and self.recalls <= 1


@runtime_checkable
class _Recaller(Protocol):
    """A player that can bring back what left the view."""

    def handle_for(self, index: int) -> str:
        """Return a handle of the view that brings a message back; empty without one."""
        ...

    def recall(self, handle: str) -> int:
        """Let the agent recall it, and return the tokens of the call and its reply."""
        ...


def play_task(policy: Policy, plan: TaskPlan, sheet: PriceSheet) -> TaskResult:
    """Return what a policy did to a task.

    Other people's rules play it in chat completions, which is all they know. A policy that raises is
    not asked again; `error` says why, and all needs are lost.
    """
    form: Format = plan.format if policy.kind in _NATIVE else "openai"
    task = make_task(plan, form)
    history = _History(task)
    known = TaskResult(
        plan=plan,
        policy=policy.name,
        tokens=sum(entry.tokens for entry in history.entries),
        needed=history.needed_tokens(),
        requests=len(history.answers),
        unpruned=unpruned_bill(history.entries, history.answers, sheet, None).cost,
        needs=sum(len(use.needs) for use in task.uses),
    )
    try:
        found = _TaskReplay(policy, history, sheet, form).play()
    except Exception as error:  # noqa: BLE001 - a policy may be anyone's code
        said = " ".join(f"{type(error).__name__}: {error}".split())
        return msgspec.structs.replace(known, lost=known.needs, error=said[:300])
    return msgspec.structs.replace(known, **found)


# -- What a reader of messages can find in them


class _Passage(NamedTuple):
    """A text of a view, and the call that it answers."""

    text: str
    call: str


def _passages(messages: Iterable[SentMessage]) -> Iterator[_Passage]:
    """Yield the texts of messages; a note of ours begins a new one, so that each keeps its own lines."""
    calls: dict[str, str] = {}
    for entry in messages:
        said = parse(entry.message, shape_of(entry.message), "m")
        for part in said.parts:
            if part.kind == "tool_call":
                calls[part.call_id or ""] = part.text
        answered = [calls.get(p.call_id or "", "") for p in said.parts if p.kind == "tool_result"]
        for text in entry.texts:
            for piece in _OUR_NOTE.split(text):
                yield _Passage(piece, " ".join(answered))


def _holds(passages: Sequence[_Passage], need: Need) -> bool:
    """Return whether a text has the exact line, and it or its call names the thing."""
    exact = _pattern(need.line)
    return any(
        need.line in passage.text
        and exact.search(passage.text) is not None
        and (need.subject in passage.text or need.subject in passage.call)
        for passage in passages
    )


@cache
def _pattern(line: str) -> re.Pattern[str]:
    """Return a pattern for a line that is not part of a longer word or number."""
    return re.compile(rf"(?<!\w){re.escape(line)}(?!\w)")


class _History:
    """All messages of a task, and where each need comes from."""

    def __init__(self, task: GatherTask) -> None:
        self.task = task
        self.library = SentMessages()
        self.entries = [self.library.of(message) for message in task.messages]
        asked = next(n for n, message in enumerate(task.messages) if message["role"] == "user")
        self.answers = [
            number
            for number, message in enumerate(task.messages)
            if message["role"] == "assistant" and number > asked
        ]
        self._found: dict[Need, int] = {}

    def source(self, need: Need, before: int) -> int:
        """Return the first message that holds a need."""
        known = self._found.get(need)
        if known is None:
            at = (n for n in range(before) if _holds(self._with_call(n), need))
            known = self._found[need] = next(at)
        return known

    def needed_tokens(self) -> int:
        """Return the most tokens that one answer cannot do without: sources, head, last exchange."""
        return max(map(self._needed_by, self.task.uses), default=0)

    def _needed_by(self, use: TaskUse) -> int:
        last = use.index - 1
        wanted = {*head_of(self.task.messages[: use.index]), last, *self._call_of(last)}
        for need in use.needs:
            place = self.source(need, use.index)
            wanted |= {place, *self._call_of(place)}
        return sum(self.entries[number].tokens for number in wanted)

    def _call_of(self, number: int) -> tuple[int, ...]:
        """Return the message whose call another one answers: scripts make one call at a time."""
        parts = parse(
            self.entries[number].message, shape_of(self.entries[number].message), "m"
        ).parts
        return (number - 1,) if any(part.kind == "tool_result" for part in parts) else ()

    def _with_call(self, number: int) -> list[_Passage]:
        return list(_passages(self.entries[n] for n in (*self._call_of(number), number)))


# -- Replay


class _TaskReplay:
    """The state of one task under one policy."""

    def __init__(self, policy: Policy, history: _History, sheet: PriceSheet, form: Format) -> None:
        task, plan = history.task, history.task.plan
        copied = msgspec.json.decode(msgspec.json.encode(task.messages))
        run = Run(id=plan.id, group=plan.family, source="gather", messages=copied)
        order = PolicyTask(limit=plan.window, regime="window", sheet=sheet, run=run, format=form)
        self._messages = copied
        self._history = history
        self._player: Player = policy.open(order)
        self._reader = ViewReader(history.library)
        self._sheet = sheet
        self._pricer = RequestPricer(sheet)
        self._uses = {use.index: use for use in task.uses}
        self._count: Counter[str] = Counter()
        self._missed: list[Need] = []
        self._cost = 0.0
        self._before: list[SentMessage] = []

    def play(self) -> dict[str, object]:
        """Play the task to its end; return the fields of the result."""
        over = not all(map(self._request_fits, self._history.answers))
        for use in self._uses.values():
            self._count["lost"] += len(use.needs)
        return {
            **self._count,
            "recall_cost": self._cost,
            "bill": self._pricer.bill.cost,
            "over": over,
            "missed": tuple(self._missed),
        }

    def _request_fits(self, index: int) -> bool:
        """Send the request that message `index` answers, and judge its view; False if it is too large."""
        view = self._sent_view(index)
        if view is None:
            return False
        if index in self._uses:
            self._judge(self._uses.pop(index), list(_passages(view)))
        return True

    def _sent_view(self, index: int) -> list[SentMessage] | None:
        """Return the view of a request, which is paid for; None if it is larger than the window."""
        view = self._reader.read(self._player.view(self._messages[:index]))
        sent = self._pricer.charge(view, self._same(view), index)
        return view if sent <= self._history.task.plan.window else None

    def _same(self, view: list[SentMessage]) -> int:
        """Return how many messages at its beginning a view shares with the one before."""
        before, self._before = self._before, view
        pairs = enumerate(zip(before, view, strict=False))
        return next((n for n, (old, new) in pairs if old is not new), min(len(before), len(view)))

    def _judge(self, use: TaskUse, shown: list[_Passage]) -> None:
        """Look for each need in the view; what is missing is recalled, as a perfect agent would."""
        missing = [need for need in use.needs if not _holds(shown, need)]
        self._missed += missing
        self._count["view"] += len(use.needs) - len(missing)
        for need in missing:
            if not _holds(shown, need):
                shown = self._recalled(self._history.source(need, use.index), use.index) or shown
            place: Place = "recall" if _holds(shown, need) else "lost"
            self._count[place] += 1

    def _recalled(self, source: int, index: int) -> list[_Passage]:
        """Recall a message and return the view of the request that follows; empty if there is no way."""
        player = self._player
        handle = player.handle_for(source) if isinstance(player, _Recaller) else ""
        if not handle or not isinstance(player, _Recaller):
            return []
        paid = self._pricer.bill.cost
        self._count["recalls"] += 1
        self._count["recall_tokens"] += player.recall(handle)
        view = self._sent_view(index)
        self._cost += self._pricer.bill.cost - paid
        return list(_passages(view or ()))
