"""Collecting: a request is read into its session, and goes out with the view that the session gives.

The session's own collector decides what leaves; here its decision is put into the client's bytes. Whatever
goes wrong on the way, the request goes out as it came, and the reason is recorded.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from hashlib import blake2b
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from ctxgc.config import SessionSettings
from ctxgc.errors import ContextOverflowError, CtxgcError, UnknownHandleError
from ctxgc.insight import answer_spend, request_prices
from ctxgc.proxy.board import SessionBoard, SessionRow
from ctxgc.proxy.cache_watch import SentRequest, cache_seconds
from ctxgc.proxy.conversations import PREFIX, AgentLines, Asked, Conversations, Line
from ctxgc.proxy.gateway import GatewaySocket
from ctxgc.proxy.identity import identity_of
from ctxgc.proxy.metrics import Arm, ProxyLedger, ProxyMetrics
from ctxgc.proxy.options import Report
from ctxgc.proxy.own_compaction import (
    LocalAnswer,
    compacted,
    is_compaction,
    is_delegated,
    opened,
)
from ctxgc.proxy.recall_loop import HiddenTurn, ProviderTurn, answer_all, following
from ctxgc.proxy.request_body import RequestBody, UnreadableError, loads, spliced
from ctxgc.proxy.spending import SpendCaps, Spending
from ctxgc.proxy.usage import AnswerUsage
from ctxgc.session import Format, Overflow, Session, Store, recall_template, utc_now

_log = logging.getLogger("ctxgc.proxy")

Outcome = Literal[
    "unchanged", "edited", "observed", "compaction", "compacted", "server_held", "unreadable", "failed",
    "capped",
]  # fmt: skip

_SERVER_HELD = ("previous_response_id", "conversation", "thread")
_MILLION = "context-1m"
_HANDLE = re.compile(rb"h-[a-z2-7]{16}")
_RECALL = re.compile(r"(?:^|__)context_recall$")


class PreparedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request as it goes out: its body, what became of it, and the line it belongs to."""

    body: bytes
    outcome: Outcome
    reason: str = ""
    envelope: RequestBody | None = None
    conversation: AgentLines | None = None
    line: Line | None = None
    number: int = 0
    sent: SentRequest | None = None
    recalls: bool = False
    """Whether our tools are sent, whose calls are answered here."""
    left_out: int = 0
    """How many tokens more the client is told that its request had."""
    answer: LocalAnswer | None = None
    """What the client gets without the provider being asked."""


class CollectOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How requests are collected in."""

    context_limit: int | None = None
    own_compaction: bool = False
    recall: bool = True
    report: Report = "forwarded"
    observe: bool = False
    holdout: float = 0.0
    caps: SpendCaps = SpendCaps()

    def arm_of(self, name: str) -> Arm:
        """Return whether the requests of a session are collected in, or only observed."""
        drawn = int.from_bytes(blake2b(name.encode(), digest_size=4).digest()) / (1 << 32)
        return "observed" if self.observe or 100 * drawn < self.holdout else "collected"


class Collecting:
    """Reads requests into sessions of a store."""

    def __init__(
        self,
        store: Store,
        options: CollectOptions,
        metrics: ProxyMetrics,
        *,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._options = options
        self._metrics = metrics
        self._store = store
        self._clock = clock
        self._conversations = Conversations(store, self._open)
        self.gateway = GatewaySocket(
            self._conversations, context_limit=options.context_limit,
            is_observed=lambda name: options.arm_of(name) == "observed",
        )  # fmt: skip
        self._spending = Spending(store, options.caps, clock)
        self._board = SessionBoard(self._conversations, clock)
        self._has_prices = SessionSettings.from_env().prices is not None

    def _open(self, name: str, asked: Asked) -> Session:
        # What the user says about prices comes before what the request says about its cache.
        life = None if self._has_prices else asked.cache_seconds
        return Session(
            asked.context_limit, model=asked.model, store=self._store, session_id=name,
            recall_call=asked.recall_call or "", clock=self._clock,
            prices=None if life is None else request_prices(asked.model, life),
        )  # fmt: skip

    def board(self, tenant: str) -> list[SessionRow]:
        """Return what is known of a caller's sessions that are open, the one heard of last first."""
        return self._board.rows(f"{PREFIX}{tenant}:")

    def prepare(
        self,
        body: bytes,
        form: Format,
        headers: Mapping[str, str],
        tenant: str,
        compacts: bool = False,
    ) -> PreparedRequest:
        """Return a request as it goes out; one that cannot be worked on goes out as it came.

        `compacts` says that its path asks for a compaction.
        """
        made = self._made(body, form, headers, tenant, compacts=compacts)
        self._metrics.note_request(form, made.outcome)
        return made

    def _made(
        self, body: bytes, form: Format, headers: Mapping[str, str], tenant: str, *, compacts: bool
    ) -> PreparedRequest:
        try:
            return self._prepare(body, form, headers, tenant, compacts=compacts)
        except UnreadableError as error:
            return PreparedRequest(body=body, outcome="unreadable", reason=error.message)
        except CtxgcError as error:
            _log.warning("a request is sent as it came: %s", error.code)
            return PreparedRequest(body=body, outcome="failed", reason=error.code)
        except Exception as error:  # noqa: BLE001 - a fault of ours is not the agent's
            # Its text may quote the request, which belongs in no log.
            _log.warning("a request is sent as it came: %s", type(error).__name__)
            return PreparedRequest(body=body, outcome="failed", reason=type(error).__name__)

    def _prepare(
        self, body: bytes, form: Format, headers: Mapping[str, str], tenant: str, *, compacts: bool
    ) -> PreparedRequest:
        envelope = opened(RequestBody(body, form))
        refusal = self._spending.refusal(0.0)
        if refusal is not None:
            return PreparedRequest(body=body, outcome="capped", reason=refusal)
        held = next((name for name in _SERVER_HELD if envelope.field(name)), None)
        if held is not None:
            return PreparedRequest(
                body=envelope.body, outcome="server_held", reason=held, envelope=envelope
            )
        conversation = self._conversations.get(identity_of(envelope, headers, tenant))
        asked = self._asked(envelope, headers)
        with conversation.lock:
            envelope = conversation.whole(envelope, asked)
            line, messages = conversation.line_of(envelope, asked)
            refusal = self._spending.refusal(conversation.spent())
            if refusal is not None:
                return PreparedRequest(body=body, outcome="capped", reason=refusal)
            changed, before = line.follow(envelope), ProxyLedger.of(line.session)
            if line.session.shared(messages) < len(line.session.arrivals()):
                changed |= {"history"}
            line.session.sync(messages, form)
            line.requests += 1
            sent = SentRequest(sent_at=self._clock(), model=asked.model, changed=changed)
            made = PreparedRequest(
                body=envelope.body, outcome="unchanged", envelope=envelope, conversation=conversation,
                line=line, number=line.requests, sent=sent,
            )  # fmt: skip
            if compacts or is_compaction(envelope):
                return self._for_compaction(made, envelope, line, whole=compacts)
            shown = self._with_our_tools(_with_view(made, line), line)
            shown = self._reported(shown, line.session)
            arm, now = self._options.arm_of(line.name), ProxyLedger.of(line.session)
            self._metrics.note_session(line.name, arm, before, now)
            if arm == "observed":
                return replace(made, outcome="observed")
            return replace(
                shown, sent=replace(sent, collected=now.collections > before.collections)
            )

    def _asked(self, envelope: RequestBody, headers: Mapping[str, str]) -> Asked:
        limit = self._options.context_limit
        if limit is None and _MILLION in headers.get("anthropic-beta", ""):
            limit = 1_000_000
        call = _recall_call(envelope)
        recalls_here = call is None and self._options.recall
        return Asked(
            model=envelope.text("model") or None,
            context_limit=limit,
            recall_call=recall_template() if recalls_here else call,
            recalls_here=recalls_here,
            cache_seconds=cache_seconds(envelope),
        )

    def _reported(self, made: PreparedRequest, session: Session) -> PreparedRequest:
        """Return a request with what its client's gauge is to show besides."""
        if self._options.report == "forwarded":
            return made
        whole = session.inspect().requests.unpruned_tokens()
        return replace(made, left_out=max(0, whole - session.budget.total_tokens()))

    def _with_our_tools(self, made: PreparedRequest, line: Line) -> PreparedRequest:
        """Return a request with our tools from the first one on whose view names a live handle.

        An agent that has them from our MCP server needs them not, and one that is only observed gets none.
        """
        envelope = made.envelope
        observed = self._options.arm_of(line.name) == "observed"
        if envelope is None or observed or not line.asked.recalls_here:
            return made
        if not line.has_our_tools:
            if not _names_handle(made.body, line.session):
                return made
            line.send_our_tools(envelope)
        tools = line.session.tools(envelope.form)
        body = RequestBody(made.body, envelope.form).with_tools(tools)
        return replace(made, body=body, outcome="edited", recalls=True)

    def answered(self, made: PreparedRequest, ended: ProviderTurn) -> bytes | None:
        """Answer the calls of our tools in an answer of the provider.

        Returns the request that goes on after it; None if there is none, or the client has to answer, too.
        """
        conversation, line, envelope = made.conversation, made.line, made.envelope
        if conversation is None or line is None or envelope is None:
            return None
        with conversation.lock:
            lines = (conversation.current(line), *conversation.lines)
            answer_all(ended, lambda call: _holder(lines, call).answer(call), envelope.form)
        self._metrics.note_recalls(len(ended.ours))
        return following(envelope, ended) if ended.goes_on else None

    def remember(self, made: PreparedRequest, hidden: Mapping[str, HiddenTurn]) -> None:
        """Remember, durably, what the client did not see of the model's turn."""
        if made.conversation is None or made.line is None or not hidden:
            return
        with made.conversation.lock:
            line = made.conversation.current(made.line)
            line.hide(hidden)
            line.session.flush()

    def _for_compaction(
        self, made: PreparedRequest, envelope: RequestBody, line: Line, *, whole: bool
    ) -> PreparedRequest:
        """Return a request for a summary as it came, or with our answer to it.

        If it no longer fits as it came, it goes out as the view shows it.
        """
        session, options = line.session, self._options
        is_ours = options.own_compaction and options.arm_of(line.name) == "collected"
        if is_ours and not is_delegated(envelope):
            recall = (line.asked.recall_call or "").partition("(")[0] or None
            answer = compacted(envelope, session, recall, whole=whole)
            return replace(made, outcome="compacted", answer=answer)
        session.checkpoint("before the agent's compaction", triggers=("compaction",))
        body = made.body
        if session.inspect().requests.unpruned_tokens() > session.context_limit:
            body = envelope.rewritten(spliced(envelope.messages, session.inspect().view.placed()))
        return replace(made, body=body, outcome="compaction")

    # -- afterwards ---------------------------------------------------------------------------------

    def relieved(self, made: PreparedRequest, overflow: Overflow) -> PreparedRequest | None:
        """Return a request that the provider refused as too long, strictly smaller; None if it cannot be."""
        if made.line is None or made.conversation is None or made.outcome == "observed":
            return None
        with made.conversation.lock:
            if made.line.requests != made.number:
                return None
            try:
                made.line.session.recover(overflow)
                again = self._with_our_tools(_with_view(made, made.line), made.line)
            except ContextOverflowError:
                return None
            except CtxgcError as error:
                _log.warning("a refused request could not be made smaller: %s", error.code)
                return None
        if len(again.body) >= len(made.body):
            return None
        self._metrics.note_retry()
        return again

    def learn(self, made: PreparedRequest, usage: AnswerUsage) -> None:
        """Take in what the provider counted: what the request cost, and what its cache had not kept."""
        if made.envelope is None or not usage.counts:
            return
        dollars = self._spending.dollars(usage.counts, made.envelope.text("model"))
        if made.line is None or made.conversation is None:
            self._spending.book(dollars, None)
            return
        with made.conversation.lock:
            line = made.conversation.current(made.line)
            self._spending.book(dollars, line)
            try:
                self._learn(made, line, usage)
                if self._options.caps != SpendCaps():
                    line.session.flush()
            except CtxgcError as error:
                _log.warning("what the provider counted was not taken in: %s", error.code)

    def _learn(self, made: PreparedRequest, line: Line, usage: AnswerUsage) -> None:
        counted = usage.input_tokens
        if not counted:
            return
        self._metrics.note_input(self._options.arm_of(line.name), counted)
        if made.sent is not None:
            miss = line.watch.look(
                made.sent, counted, usage.cache_read,
                life=line.session.inspect().options.prices.ttl_seconds,
                diagnostics=usage.diagnostics,
            )  # fmt: skip
            if miss is not None:
                self._metrics.note_miss(miss)
                _log.info("%s: the cache missed %d tokens: %s", line.name, miss.tokens, miss.cause)
        if (
            line is made.line
            and line.requests == made.number
            and made.outcome in ("unchanged", "edited")
        ):
            spend = answer_spend(usage.counts, line.asked.model)
            line.session.report_usage(
                counted,
                cache_read=spend.cache_read,
                cache_write=spend.cache_write_5m + spend.cache_write_1h,
                cache_write_1h=spend.cache_write_1h,
                output_tokens=spend.output,
            )

    def held(self, name: str) -> AbstractContextManager[None]:
        """Keep requests away from a session of the store while somebody else changes it."""
        return self._conversations.held(name)

    def close(self) -> None:
        """Make everything durable and let go of the store."""
        self._conversations.close()
        self._store.close()


def _with_view(made: PreparedRequest, line: Line) -> PreparedRequest:
    """Return a request with the view of its session in place of its messages."""
    envelope = made.envelope
    view = line.session.placed()
    if envelope is None or _is_untouched(view, len(envelope.messages)):
        return made
    body = envelope.rewritten(spliced(envelope.messages, view))
    return replace(made, body=body, outcome="edited")


def _names_handle(body: bytes, session: Session) -> bool:
    """Return whether a request names something that the session can give back."""
    found = {match.decode() for match in _HANDLE.findall(body)}
    return any(_has(session, handle) for handle in found)


def _has(session: Session, handle: str) -> bool:
    try:
        session.inspect().stash.find(handle)
    except UnknownHandleError:
        return False
    return True


def _holder(lines: Sequence[Line], call: object) -> Session:
    """Return the session of the first line that has what a call names, else that of the first."""
    found = _HANDLE.search(json.dumps(call).encode())
    if found is None:
        return lines[0].session
    named = found[0].decode()
    return next((line.session for line in lines if _has(line.session, named)), lines[0].session)


def _is_untouched(view: Any, count: int) -> bool:
    return [each.number for each in view if each.is_whole] == list(range(count)) and len(
        view
    ) == count


def _recall_call(envelope: RequestBody) -> str | None:
    """Return how the model recalls a handle with the tool of our MCP server, if the agent has that."""
    raw = envelope.raw("tools")
    if raw is None or b"context_recall" not in raw:
        return None
    for tool in loads(raw) or ():
        function = tool.get("function") if isinstance(tool, dict) else None
        name = (function if isinstance(function, dict) else tool).get("name", "")
        if isinstance(name, str) and _RECALL.search(name):
            return recall_template(name)
    return None
