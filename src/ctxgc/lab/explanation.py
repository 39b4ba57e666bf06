"""Explain one decision: replay a run with one of our policies and show what a request removed and why."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from ctxgc.collector import Certificate, GCResult
from ctxgc.economics import PriceSheet
from ctxgc.errors import InputError
from ctxgc.lab.needs import Needs, RequestNeeds, SentMessage
from ctxgc.lab.policies import Policy, PolicyTask
from ctxgc.lab.policies_ctxgc import SessionPlayer
from ctxgc.lab.regimes import Regime
from ctxgc.lab.residency import Residency, State
from ctxgc.lab.runs import Run

# -- What an explanation holds


_TARGETS = ("file_path", "path", "command", "cmd", "pattern", "query", "url")
_LONGEST = 90


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """A fact of a message that had left, needed by a later request, and where it was then."""

    fact: str
    request: int
    state: State


class Departure(msgspec.Struct, frozen=True, kw_only=True):
    """A message that left the view or was shortened, why, and what was needed of it later.

    Attributes:
        index: its number in the run.
        role: its role; `tool` and `target` are those of the call that it makes or answers.
        tokens: its original size; `left`: the size of what replaces it, 0 if nothing does.
        reason: the reason that the plan gives.
        instead: the beginning of what replaces it.
        uses: its facts that later requests needed.
        lines: its lines that were quoted later; `lines_kept`: those still in the view then.
    """

    index: int
    role: str
    tool: str
    target: str
    tokens: int
    left: int
    reason: str
    instead: str
    uses: list[Use]
    lines: int
    lines_kept: int


class Money(msgspec.Struct, frozen=True, kw_only=True):
    """What a decision cost and saved, in tokens and in uncached input tokens.

    Attributes:
        sent: the tokens of the request; `cached`: those read from the cache.
        removed: by how many tokens the view is smaller than without the decision.
        rewritten: tokens sent before that had to be written to the cache again.
        returned: tokens that came back into the view, by a recall or as a notice.
        price: how much more this request cost than without the decision; negative if less.
        saving: how much less each later request costs; `requests_left`: how many there were.
        net: what was saved in the end, if nothing else had changed.
        payback: after how many requests the price was earned back; None if never.
        is_cold: the cache had expired, so everything was written anyway.
    """

    sent: int
    cached: int
    removed: int
    rewritten: int
    returned: int
    price: float
    saving: float
    requests_left: int
    net: float
    payback: int | None
    is_cold: bool


class CollectionSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A collection of the session: its trigger, and the size of the view before and after.

    `certificate` is what a collection can show that was on probation; it has the numbers of messages in the
    run instead of their ids.
    """

    trigger: str
    tokens_before: int
    tokens_after: int
    shortfall: int
    error: str
    certificate: Certificate | None = None


class RequestExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """One request of one run under one policy.

    `others` are the requests at which something left. `departures` is empty if nothing left at this one.
    """

    run: str
    policy: str
    regime: str
    sheet: str
    limit: int
    request: int
    requests: int
    messages: int
    collections: list[CollectionSummary]
    departures: list[Departure]
    money: Money
    others: list[int]


def described(run: Run, index: int) -> tuple[str, str, str]:
    """Return the role of a message, and the tool and target of the call that it makes or answers."""
    message = run.messages[index]
    role = str(message.get("role", ""))
    calls = message.get("tool_calls") or _calls_of(run, index, message.get("tool_call_id"))
    if not calls:
        return role, "", _shortened(str(message.get("content") or ""))
    function = calls[0].get("function", {})
    return role, str(function.get("name", "")), _target(str(function.get("arguments", "")))


def _calls_of(run: Run, index: int, call_id: object) -> list[dict[str, Any]]:
    """Return the nearest call before a message that has this id."""
    for message in reversed(run.messages[:index]):
        for call in message.get("tool_calls") or ():
            if call_id is not None and call.get("id") == call_id:
                return [call]
    return []


def _target(arguments: str) -> str:
    try:
        given = json.loads(arguments)
    except ValueError:
        return _shortened(arguments)
    if not isinstance(given, dict):
        return _shortened(arguments)
    named = next((str(given[key]) for key in _TARGETS if given.get(key)), "")
    return _shortened(named or arguments)


def _shortened(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _LONGEST else f"{flat[: _LONGEST - 3]}..."


_SHOWN_LINES = 3


def explain(
    policy: Policy, run: Run, request: int, regime: Regime, sheet: PriceSheet
) -> RequestExplanation:
    """Return what one of our policies decided at a request (counted from 1), and its consequences.

    Raises:
        InputError: the run has no such request, or the policy is not one of ours.
    """
    needs = Needs(run)
    if not 1 <= request <= len(needs.steps):
        raise InputError(
            f"{run.id} has no request {request}",
            hint=f"name one from 1 to {len(needs.steps)}",
            field="step",
        )
    return _ExplainedReplay(policy, needs, request, regime, sheet).explained()


class _ExplainedReplay:
    """The state of the replay, with everything about the explained request."""

    def __init__(
        self, policy: Policy, needs: Needs, request: int, regime: Regime, sheet: PriceSheet
    ) -> None:
        self._policy, self._needs, self._request = policy, needs, request
        self._regime, self._sheet = regime, sheet
        self._limit = regime.limit(needs.run.messages)
        task = PolicyTask(limit=self._limit, regime=regime.kind, sheet=sheet, run=needs.run)
        player = policy.open(task)
        if not isinstance(player, SessionPlayer):
            raise InputError(
                f"{policy.name} gives no reasons",
                hint="only ctxgc's own policies can be explained, for example ctxgc",
                field="policy",
            )
        self._player = player
        self._residency = Residency(needs)
        self._view: list[SentMessage] = []
        self._reasons: dict[int, str] = {}
        self._instead: dict[int, SentMessage] = {}
        self._uses: dict[int, list[Use]] = {}
        self._lines: dict[int, list[bool]] = {}
        self._others: list[int] = []

    def explained(self) -> RequestExplanation:
        """Play the run to its end and return the explanation."""
        collections: list[CollectionSummary] = []
        money: Money | None = None
        for number, step in enumerate(self._needs.steps, 1):
            whole = self._whole(step.index)
            known = len(self._player.session.gc_history)
            before, same = self._ask(step)
            new = self._player.session.gc_history[known:]
            gone = self._gone(new, whole)
            if gone:
                self._others.append(number)
            if number == self._request:
                collections = [self._collection(result) for result in new]
                money = self._money(before, same, number)
                self._note_gone(gone)
            self._note_uses(step, number)
        assert money is not None  # noqa: S101 - the request is one of the steps
        return self._explanation(collections, money)

    def _ask(self, step: RequestNeeds) -> tuple[list[SentMessage], int]:
        """Make a request; return the view before it and the length of their common prefix."""
        before = self._view
        shown = self._player.view(self._needs.run.messages[: step.index])
        self._view = [self._needs.library.of(message) for message in shown]
        return before, self._residency.show(self._view)

    def _whole(self, index: int) -> set[int]:
        """Return the messages that are in the view unchanged, or come in now."""
        first = self._needs.steps[0].index
        last = next((s.index for s in reversed(self._needs.steps) if s.index < index), first)
        return {i for i in range(index) if i >= last or self._residency.is_whole(i)}

    def _gone(self, new: Sequence[GCResult], whole: set[int]) -> dict[int, str]:
        """Return the messages that left or changed at this request, each with its reason."""
        place = self._numbers()
        said = {
            place[name]: item.reason
            for result in new
            if result.success
            for item in result.removal_list
            for name in item.message_ids
            if name in place
        }
        changed = {i for i in whole if not self._residency.is_whole(i)}
        return {i: said.get(i) or "shortened when it came" for i in sorted(changed | set(said))}

    def _numbers(self) -> dict[str, int]:
        """Return the number in the run of each message that the session knows by its id."""
        return {name: i for i, name in enumerate(self._player.session.arrivals())}

    def _collection(self, result: GCResult) -> CollectionSummary:
        certificate, number = result.certificate, self._numbers()
        if certificate is not None:
            used = [replace(u, message_id=str(number[u.message_id])) for u in certificate.used]
            left = [str(number[name]) for name in certificate.left if name in number]
            certificate = replace(certificate, used=tuple(used), left=tuple(left))
        return CollectionSummary(
            trigger=str(result.trigger_reason),
            tokens_before=result.tokens_before,
            tokens_after=result.tokens_after,
            shortfall=result.shortfall,
            error=result.error or "",
            certificate=certificate,
        )

    def _note_gone(self, gone: dict[int, str]) -> None:
        self._reasons = gone
        answers = {e.message.get("tool_call_id"): e for e in self._view if _is_answer(e.message)}
        for index in gone:
            message = self._needs.run.messages[index]
            if _is_answer(message) and message["tool_call_id"] in answers:
                self._instead[index] = answers[message["tool_call_id"]]

    def _note_uses(self, step: RequestNeeds, number: int) -> None:
        """Note what the answer to this or a later request needed of what had left."""
        for fact in step.needs:
            for index in self._sources(self._needs.facts.before(fact, step.index)):
                state = self._residency.state(fact, step.index, self._player.is_recallable)
                use = Use(fact=fact, request=number, state=state)
                self._uses.setdefault(index, []).append(use)
        for line in step.lines:
            for index in self._sources(self._needs.lines.before(line, step.index)):
                kept = self._residency.holds_line(line, step.index)
                self._lines.setdefault(index, []).append(kept)

    def _sources(self, found: list[int]) -> Iterator[int]:
        return (index for index in found if index in self._reasons)

    def _money(self, before: list[SentMessage], same: int, number: int) -> Money:
        r, w = self._sheet.read, self._sheet.write
        steps = self._needs.steps
        start = steps[number - 2].index if number > 1 else 0
        arrived = sum(e.tokens for e in self._needs.entries[start : steps[number - 1].index])
        old, sent = _tokens(before), _tokens(self._view)
        is_cold = self._is_cold(number)
        cached = 0 if is_cold else _tokens(self._view[:same])
        removed = old + arrived - sent
        beyond = max(0, sent - _tokens(self._view[:same]) - arrived)
        rewritten = min(beyond, _tokens(before[same:]))
        unchanged = (w if is_cold else r) * old + w * arrived
        price = r * cached + w * (sent - cached) - unchanged
        left, saving = len(steps) - number, r * removed
        return Money(
            sent=sent, cached=cached, removed=removed,
            rewritten=0 if is_cold else rewritten, returned=beyond - rewritten,
            price=price, saving=saving, requests_left=left, net=left * saving - price,
            payback=_payback(price, saving), is_cold=is_cold,
        )  # fmt: skip

    def _is_cold(self, number: int) -> bool:
        times, life = self._needs.run.times, self._sheet.ttl_seconds
        if times is None or life is None or number < 2:
            return False
        last, now = (self._needs.steps[n].index for n in (number - 2, number - 1))
        return times[now] - times[last] > life

    def _explanation(
        self, collections: list[CollectionSummary], money: Money
    ) -> RequestExplanation:
        return RequestExplanation(
            run=self._needs.run.id,
            policy=self._policy.name,
            regime=self._regime.name,
            sheet=self._sheet.name,
            limit=self._limit,
            request=self._request,
            requests=len(self._needs.steps),
            messages=self._needs.steps[self._request - 1].index,
            collections=collections,
            departures=[self._departure(index) for index in self._reasons],
            money=money,
            others=self._others,
        )

    def _departure(self, index: int) -> Departure:
        role, tool, target = described(self._needs.run, index)
        instead = self._instead.get(index)
        lines = self._lines.get(index, [])
        return Departure(
            index=index, role=role, tool=tool, target=target,
            tokens=self._needs.entries[index].tokens,
            left=instead.tokens if instead else 0,
            reason=self._reasons[index],
            instead=_beginning(instead) if instead else "",
            uses=self._uses.get(index, []),
            lines=len(lines), lines_kept=sum(lines),
        )  # fmt: skip


def _payback(price: float, saving: float) -> int | None:
    if price <= 0:
        return 0
    return math.ceil(price / saving) if saving > 0 else None


def _tokens(entries: Sequence[SentMessage]) -> int:
    return sum(entry.tokens for entry in entries)


def _beginning(entry: SentMessage) -> str:
    content = entry.message.get("content")
    lines = content.splitlines() if isinstance(content, str) else []
    return "\n".join(lines[:_SHOWN_LINES])


def _is_answer(message: dict[str, Any]) -> bool:
    return message.get("role") == "tool" and message.get("tool_call_id") is not None
