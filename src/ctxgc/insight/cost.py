"""What sessions cost: the usage that the provider reported, at the price of each model and day."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, tzinfo
from pathlib import Path

import msgspec

from ctxgc.config import SessionSettings
from ctxgc.economics import MODEL_PRICES, ModelPrice, model_price, read_price_table
from ctxgc.errors import TranscriptError
from ctxgc.insight.local_sessions import subagent_files
from ctxgc.wire.transcripts import (
    Transcript,
    TranscriptEntry,
    TranscriptFacts,
    Usage,
    content_blocks,
    latest_usages,
    open_transcript,
)


class Spend(msgspec.Struct, kw_only=True):
    """Tokens as the provider counted them, and what they cost in dollars.

    Compactions that the provider made count as requests. `unpriced` of the requests are not in the dollars:
    no price is known for their model.
    """

    requests: int = 0
    uncached: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    output: int = 0
    dollars: float = 0.0
    unpriced: int = 0

    @property
    def sent(self) -> int:
        """All tokens that were sent."""
        return self.uncached + self.cache_read + self.cache_write_5m + self.cache_write_1h

    def add(self, other: Spend) -> None:
        """Add the tokens and the dollars of another spend."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


def total_of(spends: Iterable[Spend]) -> Spend:
    """Return the sum of spends."""
    total = Spend()
    for spend in spends:
        total.add(spend)
    return total


def prices_in_use(path: str | Path | None = None) -> tuple[ModelPrice, ...]:
    """Return the prices of models: those in a file (else in `CTXGC_PRICE_TABLE`) before those that ship.

    Raises:
        ConfigError: the file cannot be read, or a price in it is wrong.
    """
    own = path or SessionSettings.from_env().price_table
    return MODEL_PRICES if own is None else read_price_table(own)


def spend_of(
    usage: Usage, table: Sequence[ModelPrice] = MODEL_PRICES, model: str | None = None
) -> Spend:
    """Return what one request cost; `model` is what it was sent to if its record does not say."""
    name = usage.model or model
    day = "" if usage.written_at is None else usage.written_at.date().isoformat()
    price = model_price(name, day, table)
    return total_of(_one(each, price) for each in (usage, *usage.compactions))


def _one(usage: Usage, price: ModelPrice | None) -> Spend:
    dollars = 0.0 if price is None else price.dollars(
        uncached=usage.uncached, cache_read=usage.cache_read, cache_write=usage.cache_write,
        cache_write_1h=usage.cache_write_1h, output=usage.output,
    )  # fmt: skip
    return Spend(
        requests=1,
        uncached=usage.uncached,
        cache_read=usage.cache_read,
        cache_write_5m=usage.cache_write - usage.cache_write_1h,
        cache_write_1h=usage.cache_write_1h,
        output=usage.output,
        dollars=dollars,
        unpriced=int(price is None),
    )


# -- Requests


UNKNOWN_MODEL, UNKNOWN_DAY = "unknown model", "unknown day"
MAIN, NO_TOOL, NO_SERVER = "main conversation", "no tool", "no MCP server"
_SUBAGENT = "subagent"


class CostedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request: what it cost, and what it can be summed up by.

    `subagent` is the kind of agent that sent it, None in the main conversation; `tools` are those that its
    answer called.
    """

    spend: Spend
    session_id: str
    project: str
    day: str
    model: str
    subagent: str | None = None
    tools: tuple[str, ...] = ()
    reply_id: str | None = None


def session_requests(
    path: Path, table: Sequence[ModelPrice] = MODEL_PRICES, zone: tzinfo = UTC
) -> Iterator[CostedRequest]:
    """Yield the requests of a session, each once, those of its subagents included.

    Days are those of `zone`. Files of subagents that cannot be read are passed over.

    Raises:
        TranscriptError: the session cannot be read, or contains no message.
    """
    for _, requests in requests_by_file(path, table, zone):
        yield from requests


def requests_by_file(
    path: Path, table: Sequence[ModelPrice] = MODEL_PRICES, zone: tzinfo = UTC
) -> Iterator[tuple[Path, list[CostedRequest]]]:
    """Yield the files of a session with their requests, its own first, then those of its subagents.

    Raises:
        TranscriptError: the session cannot be read, or contains no message.
    """
    main = _FileRequests(open_transcript(path))
    found = list(main.requests(table, zone))
    yield path, found
    seen = {each.reply_id for each in found} - {None}
    for file in subagent_files(path):
        try:
            side = _FileRequests(open_transcript(file), main)
        except TranscriptError:
            continue
        yield file, [each for each in side.requests(table, zone) if each.reply_id not in seen]


class _FileRequests:
    """The usage in one file, with the tools that each answer called and who sent each request."""

    def __init__(self, transcript: Transcript, main: _FileRequests | None = None) -> None:
        self.kinds: dict[str, str] = {} if main is None else main.kinds
        self._is_side = main is not None
        self._usages: list[Usage] = []
        self._tools: dict[str, list[str]] = {}
        self._agent_of: dict[str, str] = {}
        self._root_of: dict[str, str] = {}
        self._open: list[str] = []
        for item in transcript.items():
            if isinstance(item, TranscriptEntry):
                self._entry(item)
            elif isinstance(item, Usage):
                self._usage(item)
        self.facts: TranscriptFacts = transcript.facts if main is None else main.facts
        self._model = transcript.facts.model

    def requests(self, table: Sequence[ModelPrice], zone: tzinfo) -> Iterator[CostedRequest]:
        """Yield the requests of the file."""
        facts = self.facts
        for usage in latest_usages(self._usages):
            yield CostedRequest(
                spend=spend_of(usage, table, self._model),
                session_id=facts.session_id or "unknown session",
                project=facts.project or "unknown project",
                day=_day_of(usage, zone),
                model=usage.model or self._model or UNKNOWN_MODEL,
                subagent=self._subagent(usage),
                tools=tuple(dict.fromkeys(self._tools.get(_reply(usage), ()))),
                reply_id=usage.reply_id,
            )

    def _entry(self, entry: TranscriptEntry) -> None:
        if entry.data.get("role") == "assistant" or entry.data.get("type") == "function_call":
            self._answer(entry)
        if entry.is_side or self._is_side:
            self._side(entry)

    def _answer(self, entry: TranscriptEntry) -> None:
        called = [name for name, _ in _calls(entry)]
        if entry.reply_id is None:
            self._open += called
        else:
            self._tools.setdefault(entry.reply_id, []).extend(called)
        for name, said in _calls(entry):
            prompt = said.get("prompt")
            if isinstance(prompt, str):
                kind = said.get("subagent_type")
                self.kinds[prompt.strip()] = kind if isinstance(kind, str) else name

    def _usage(self, usage: Usage) -> None:
        self._usages.append(usage)
        if self._open:  # Codex counts an answer after it, and does not name it
            self._tools.setdefault(_reply(usage), []).extend(self._open)
            self._open = []

    def _side(self, entry: TranscriptEntry) -> None:
        """Note which subagent an entry is of: its first message is the prompt of the call that began it."""
        root = self._root_of.get(entry.parent_id or "", entry.message_id)
        self._root_of[entry.message_id] = root
        if root == entry.message_id:
            asked = "".join(str(block.get("text", "")) for block in content_blocks(entry.data))
            self._agent_of[root] = self.kinds.get(asked.strip(), _SUBAGENT)
        if entry.reply_id is not None:
            self._agent_of[entry.reply_id] = self._agent_of[root]

    def _subagent(self, usage: Usage) -> str | None:
        if not (usage.is_side or self._is_side):
            return None
        return self._agent_of.get(usage.reply_id or "", _SUBAGENT)


def _calls(entry: TranscriptEntry) -> list[tuple[str, dict[str, object]]]:
    data = entry.data
    if data.get("type") == "function_call":
        return [(str(data.get("name") or "unknown tool"), {})]
    calls = [block for block in content_blocks(data) if block.get("type") == "tool_use"]
    return [
        (str(call.get("name") or "unknown tool"), said if isinstance(said, dict) else {})
        for call in calls
        for said in (call.get("input"),)
    ]


def _reply(usage: Usage) -> str:
    return usage.reply_id or f"line-{usage.line}"


def _day_of(usage: Usage, zone: tzinfo) -> str:
    at = usage.written_at
    return UNKNOWN_DAY if at is None else at.astimezone(zone).date().isoformat()


# -- Sums


class SessionCost(msgspec.Struct, kw_only=True):
    """What one session cost: as a whole, its main conversation, its subagents, and by model and day."""

    total: Spend
    main: Spend
    subagents: Spend
    models: dict[str, Spend]
    days: dict[str, Spend]


def session_cost(
    path: str | Path, table: Sequence[ModelPrice] = MODEL_PRICES, zone: tzinfo = UTC
) -> SessionCost:
    """Return what a session cost, the requests of its subagents included.

    Days are those of `zone`. A session whose file reports no usage cost nothing that is known: its total
    has no requests.

    Raises:
        TranscriptError: the file cannot be read, or contains no message.
    """
    return summed_cost(session_requests(Path(path), table, zone))


def summed_cost(requests: Iterable[CostedRequest]) -> SessionCost:
    """Return what the requests of one session cost."""
    cost = SessionCost(total=Spend(), main=Spend(), subagents=Spend(), models={}, days={})
    for each in requests:
        cost.total.add(each.spend)
        (cost.main if each.subagent is None else cost.subagents).add(each.spend)
        cost.models.setdefault(each.model, Spend()).add(each.spend)
        cost.days.setdefault(each.day, Spend()).add(each.spend)
    return cost


COST_VIEWS = ("model", "day", "project", "session", "tool", "server", "subagent")
"""What costs are summed up by."""


class CostReport(msgspec.Struct, kw_only=True):
    """What sessions cost; each of `by` adds up to `total`. `repeated` requests were in several files."""

    total: Spend
    by: dict[str, dict[str, Spend]]
    sessions: int = 0
    repeated: int = 0


def total_cost(requests: Iterable[CostedRequest]) -> CostReport:
    """Return what requests cost in total, and by each of `COST_VIEWS`.

    A request that several files have is counted once: an agent copies what it resumes. What a request cost
    is shared equally by the tools that its answer called.
    """
    report = CostReport(total=Spend(), by={view: {} for view in COST_VIEWS})
    seen: set[tuple[str, str]] = set()
    for each in requests:
        if each.reply_id is not None:
            # Claude's ids are unique; Codex only has a running total of the session.
            is_unique = not each.reply_id.startswith("total-")
            key = ("" if is_unique else each.session_id, each.reply_id)
            if key in seen:
                report.repeated += 1
                continue
            seen.add(key)
        report.total.add(each.spend)
        _book(report, each)
    report.sessions = len(report.by["session"])
    return report


def _book(report: CostReport, request: CostedRequest) -> None:
    names = {
        "model": request.model, "day": request.day, "project": request.project,
        "session": request.session_id, "subagent": request.subagent or MAIN,
    }  # fmt: skip
    for view, name in names.items():
        report.by[view].setdefault(name, Spend()).add(request.spend)
    tools = Counter(request.tools or (NO_TOOL,))
    servers = Counter(map(server_of, request.tools or (NO_TOOL,)))
    for view, shares in (("tool", tools), ("server", servers)):
        parts = _shared(request.spend, list(shares.values()))
        for name, part in zip(shares, parts, strict=True):
            report.by[view].setdefault(name, Spend()).add(part)


def server_of(tool: str) -> str:
    """Return the MCP server of a tool, such as `github` of `mcp__github__search`."""
    return tool.split("__")[1] if tool.startswith("mcp__") and tool.count("__") > 1 else NO_SERVER


def _shared(spend: Spend, weights: list[int]) -> list[Spend]:
    """Return a spend in parts that add up to it; the request itself is booked with the first."""
    whole, left = sum(weights), msgspec.structs.replace(spend)
    parts = []
    for weight in weights[1:]:
        part = Spend(dollars=spend.dollars * weight / whole)
        for name in ("uncached", "cache_read", "cache_write_5m", "cache_write_1h", "output"):
            setattr(part, name, getattr(spend, name) * weight // whole)
        parts.append(part)
        for name in Spend.__struct_fields__:
            setattr(left, name, getattr(left, name) - getattr(part, name))
    return [left, *parts]
