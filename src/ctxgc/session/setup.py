"""Setting a session up: the arguments checked, the options chosen, and the parts put together."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, get_args

import msgspec

from ctxgc.collector import Segmenter
from ctxgc.config import (
    NO_FILE,
    GCConfig,
    GCSpec,
    SessionSettings,
    find_gc_file,
    located,
    place_of,
    read_gc_file,
    unknown_key,
    variables_in_use,
)
from ctxgc.core import ContextSegment, Heap, SegmentType, Tier
from ctxgc.economics import PriceSheet, SavingsLedger, price_sheet, sheet_of
from ctxgc.errors import ConfigError, InputError, StoreDamagedError
from ctxgc.session.agreement import LEGACY_KEY, state_from_context
from ctxgc.session.annotations import Annotations
from ctxgc.session.apply import ViewEditor
from ctxgc.session.archive import Archive, CollectionLog, Stash
from ctxgc.session.calls import Events
from ctxgc.session.collection import Collector, PricePass, SessionHost
from ctxgc.session.delete import Deletion, StashCollector
from ctxgc.session.guard import Checkpoints, RecoverableSession, SessionGuard
from ctxgc.session.intake import Intake
from ctxgc.session.notices import Notices
from ctxgc.session.part import SessionCore
from ctxgc.session.reader import RecallingReader, remember
from ctxgc.session.recall import AutoRecall, ProtectedMessages, RecallFeedback, SessionRecall
from ctxgc.session.state import Accounting, SessionOptions, SessionState
from ctxgc.session.usage import RequestLog, UsageMeter
from ctxgc.session.view import BoundThinking, View
from ctxgc.stores import (
    COLLECTIONS,
    Drop,
    SearchFilters,
    Store,
    consistent_read,
    damage_before,
    open_store,
)
from ctxgc.strategies import GCPlugin, load_gc_plugin, serving
from ctxgc.tokens import CountingCache, TokenCounter, counter_for, window_of
from ctxgc.wire import PartTexts

DEFAULT_PRICES = "anthropic-5m"

_log = logging.getLogger("ctxgc")

# -- Arguments


_KINDS: dict[str, tuple[str, ...]] = {"type": get_args(SegmentType), "tier": get_args(Tier)}


def checked_text(value: str | None, field: str) -> str | None:
    """Return a text that is not empty, or None."""
    given: object = value
    if given is not None and not (isinstance(given, str) and given):
        raise InputError(
            f"{field} cannot be {value!r}", hint="give a text, or None for none", field=field
        )
    return value


def checked_config(config: GCConfig) -> GCConfig:
    """Return `config`; raise InputError unless it is a GCConfig."""
    given: object = config
    if not isinstance(given, GCConfig):
        raise InputError(
            f"config must be a GCConfig, got {type(config).__name__}",
            hint="pass GCConfig(threshold_percent=75.0, ...)",
            field="config",
        )
    return given


def checked_plugin(plugin: GCPlugin) -> GCPlugin:
    """Return `plugin`; raise InputError unless it has everything that a GCPlugin needs."""
    given: object = plugin
    if not isinstance(given, GCPlugin):
        raise InputError(
            f"plugin must be a GCPlugin, got {type(plugin).__name__}",
            hint="pass a name, or an object with name, initialize, shutdown, should_collect, collect",
            field="plugin",
        )
    return given


def checked_ids(ids: Iterable[str], field: str) -> list[str]:
    """Return ids as a list; raise InputError for a single text, which would be a list of letters."""
    if isinstance(ids, str):
        raise InputError(f"{field} is a single text", hint="give a list of ids", field=field)
    return list(ids)


def checked_lines(line_range: Sequence[int] | None) -> tuple[int, int] | None:
    """Return the first and the last line, by the rules of a segment."""
    if line_range is None:
        return None
    given: Any = tuple(line_range)
    return ContextSegment(text="", type="note", line_range=given).line_range


def checked_filters(filters: SearchFilters | Mapping[str, Any] | None) -> SearchFilters | None:
    """Return filters; raise InputError for an unknown key or value."""
    if filters is None or isinstance(filters, SearchFilters):
        return filters
    if not isinstance(filters, Mapping):
        raise InputError(
            f"filters must be a dict, got {type(filters).__name__}",
            hint="see SearchFilters",
            field="filters",
        )
    for key, value in filters.items():
        if key not in SearchFilters.__struct_fields__:
            raise _unknown(str(key), SearchFilters.__struct_fields__, "filter")
        if value is not None and value not in _KINDS.get(key, (value,)):
            raise _unknown(str(value), _KINDS[key], key)
    try:
        return msgspec.convert(dict(filters), SearchFilters, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(f"filters: {error}", hint="see SearchFilters", field="filters") from None


def _unknown(name: str, known: Iterable[str], what: str) -> InputError:
    found = unknown_key(name, known, what)
    return InputError(f"filters: {found.message}", hint=found.hint, field="filters")


# -- Options


class SessionSetup(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller asked for; None leaves the choice to environment, file and defaults."""

    context_limit: int | None
    config: GCConfig | None
    plugin: str | GCPlugin | None
    store: str | Store | None
    prices: str | Mapping[str, Any] | PriceSheet | None
    session_id: str | None
    model: str | None
    counter: TokenCounter | None
    recall_call: str | None
    clock: Callable[[], datetime]
    handle_key: bytes | None
    damaged: Literal["refuse", "accept"]


def set_up(asked: SessionSetup) -> SessionParts:
    """Return the parts of a new session, or of the one that the store holds under this id.

    Raises:
        ConfigError: something in one of the places is wrong.
        InputError: the size of the window is not given anywhere.
    """
    said = SessionSettings.from_env()
    path = find_gc_file()
    spec = NO_FILE if path is None else read_gc_file(path)
    config = spec.config() if asked.config is None else checked_config(asked.config)
    plugin = _plugin(asked, said, spec, config)
    store = open_store(asked.store or said.store)
    name = checked_text(asked.session_id, "session_id") or uuid.uuid4().hex
    options = SessionOptions(
        config=config,
        plugin=plugin,
        prices=_prices(asked, said),
        model=asked.model,
        recall_call=asked.recall_call or None,
        clock=asked.clock,
    )

    def read() -> SessionParts:
        stored = store.get(name, "state", "session")
        if stored is None:
            stored = state_from_context(store.get(name, "state", LEGACY_KEY) or {})
        limit = _limit(asked, said, stored)
        ledger = SavingsLedger(options.prices, limit)
        state = SessionState.from_doc(stored, ledger)
        if asked.handle_key is not None and "secret" not in stored:
            state.secret = asked.handle_key.hex()
        state.recall_calls = remember(state.recall_calls, asked.recall_call)
        options.recall_call = next(reversed(state.recall_calls), None) or None
        counter = asked.counter
        if counter is None:
            counter = counter_for(asked.model, state.calibrations)
        return SessionParts(
            options=options,
            state=state,
            context_limit=limit,
            counter=CountingCache(counter),
            store=store,
            session_id=name,
        )

    if asked.damaged not in ("refuse", "accept"):
        raise InputError(
            f"damaged cannot be {asked.damaged!r}", hint="'refuse' or 'accept'", field="damaged"
        )
    accept = asked.damaged == "accept"
    parts, lost = _read_whole(store, name, read, accept=accept)
    lost += parts.archive.missing
    # Of what nothing is known it cannot be said that it is whole, once the store was damaged.
    if asked.session_id is not None and not parts.archive.is_counted:
        aside = damage_before(store)
        lost += [] if aside is None else [f"perhaps more of it: {aside}"]
    if lost and not accept:
        raise StoreDamagedError(
            f"the store has not all of the session '{name}': {'; '.join(lost)} missing",
            hint="restore the store from a copy, or open the session with damaged='accept' to go on without",
            session_id=name,
            missing=lost,
        )
    parts.note_damage(lost)
    return parts


def _read_whole(
    store: Store, name: str, read: Callable[[], SessionParts], *, accept: bool
) -> tuple[SessionParts, list[str]]:
    """Return what is read; where that was accepted, without the documents that are damaged."""
    lost: list[str] = []
    while True:
        try:
            return consistent_read(store, name, read), lost
        except StoreDamagedError as error:
            collection, key = error.details.get("collection"), error.details.get("key")
            place = f"{key} in {collection}"
            if not accept or collection not in COLLECTIONS or place in lost:
                raise
            store.commit(name, [Drop(collection, str(key))])
            lost.append(place)


def _plugin(asked: SessionSetup, said: SessionSettings, spec: GCSpec, config: GCConfig) -> GCPlugin:
    """Return the strategy; a wrong name or option is an error that names its file or variable."""
    named = asked.plugin or said.plugin or spec.plugin
    if not isinstance(named, str):
        return checked_plugin(named)
    try:
        return load_gc_plugin(named, config.plugin_config)
    except ConfigError as error:
        if error.details.get("key") == "plugin_config":
            code = () if asked.config is None else ("plugin_config",)
            place = place_of(error, GCConfig, code=code, file=spec.values, origin=spec.origin)
        else:
            place = "" if asked.plugin else _variable("plugin") or spec.origin
        raise located(error, place) from None


def _prices(asked: SessionSetup, said: SessionSettings) -> PriceSheet:
    try:
        return price_sheet(asked.prices or said.prices or sheet_of(asked.model) or DEFAULT_PRICES)
    except ConfigError as error:
        raise located(error, "" if asked.prices else _variable("prices")) from None


def _variable(key: str) -> str:
    name = variables_in_use(SessionSettings).get(key)
    return "" if name is None else f"environment variable {name}"


def _limit(asked: SessionSetup, said: SessionSettings, stored: Mapping[str, Any]) -> int:
    """Return the size of the window: given, or that of the model and of the session as it was stored."""
    limit = asked.context_limit if asked.context_limit is not None else said.context_limit
    if limit is not None:
        return limit
    known = [size for size in (stored.get("context_limit"), window_of(asked.model)) if size]
    if not known:
        unknown = "" if asked.model is None else f": the window of {asked.model!r} is not known"
        raise InputError(
            f"context_limit is missing{unknown}",
            hint="pass context_limit=, the size of the model's window in tokens, or a model= that is known, "
            "or set CTXGC_CONTEXT_LIMIT",
            field="context_limit",
        )
    return min(known)


# -- Parts


class SessionParts:
    """The parts of a session, each made from the parts that it needs.

    `session.inspect()` returns it. Worth reading: `state` (all stored facts), `view` (messages, originals,
    arrivals), `heap`, `stash` (handles), `accounting` (budget, tokens), `log` (collections), `requests`,
    `archive` (the store).
    """

    def __init__(
        self,
        *,
        options: SessionOptions,
        state: SessionState,
        context_limit: int,
        counter: CountingCache,
        store: Store,
        session_id: str,
    ) -> None:
        clock = options.clock
        self.options = options
        self.state = state
        self.log = CollectionLog()
        self.damage: tuple[str, ...] = ()
        """What the store had lost of the session when it was opened."""
        self.events = Events(clock)
        self.view = View()
        self.thinking = BoundThinking(self.view, options.model)
        self.heap = Heap(counter.count)
        self.segmenter = Segmenter(
            counter, self.heap, clock, marks_secrets=options.config.secrets != "off"
        )
        self.stash = Stash(self.heap, bytes.fromhex(state.secret))
        self.accounting = Accounting(context_limit, counter, state, clock)
        self.archive = archive = Archive(
            store, session_id, state=state, view=self.view, heap=self.heap, segmenter=self.segmenter,
            stash=self.stash, accounting=self.accounting, thinking=self.thinking,
        )  # fmt: skip
        if archive.is_known:
            archive.load(self.log)
        self.core = core = SessionCore(
            options=options, state=state, view=self.view, thinking=self.thinking, heap=self.heap,
            segmenter=self.segmenter, stash=self.stash, accounting=self.accounting, archive=archive,
            log=self.log, events=self.events,
        )  # fmt: skip
        self.protected = protected = ProtectedMessages(core)
        self.reader = RecallingReader(core)
        self.annotations = annotations = Annotations(core)
        self.meter = meter = UsageMeter(core, held=protected.held)
        self.requests = requests = RequestLog(core)
        self.editor = editor = ViewEditor(core, meter=meter)
        self.feedback = feedback = RecallFeedback(core)
        self.texts = texts = PartTexts()
        self.intake = Intake(core, meter=meter, editor=editor, texts=texts)
        self.host = SessionHost(core, texts=texts)
        options.plugin = serving(options.plugin, self.host)
        self.collector = collector = Collector(
            core, meter=meter, protected=protected, editor=editor, feedback=feedback
        )
        self.price_pass = price_pass = PricePass(
            core, requests=requests, protected=protected, editor=editor, collector=collector
        )
        self.recall = SessionRecall(core, protected=protected, editor=editor, feedback=feedback)
        self.notices = notices = Notices(core, editor=editor)
        self.deletion = deletion = Deletion(core, editor=editor, notices=notices)
        self.stash_collector = stash_collector = StashCollector(
            core, protected=protected, deletion=deletion
        )
        self.checkpoints = checkpoints = Checkpoints(
            core, meter=meter, annotations=annotations, editor=editor
        )
        self.recoverable = recoverable = RecoverableSession(
            core, protected=protected, collector=collector, checkpoints=checkpoints,
            notices=notices, host=self.host,
        )  # fmt: skip

        def new_auto_recall() -> AutoRecall:
            return AutoRecall(
                core, editor=editor, feedback=feedback, price_pass_is_on=price_pass.is_on
            )

        self.guard = SessionGuard(
            core, checkpoints=checkpoints, subject=recoverable, stash_collector=stash_collector,
            new_auto_recall=new_auto_recall,
        )  # fmt: skip

    def note_damage(self, lost: Sequence[str]) -> None:
        """Go on without what was lost, and say so: in the log, and as an event to whoever listens first."""
        self.damage = tuple(lost)
        if lost:
            name = self.archive.session_id
            _log.warning("session %s goes on without: %s", name, "; ".join(lost))
            self.events.at_first("damaged", missing=list(lost))

    def take_recall_tools(self) -> None:
        """Let tombstones name the call that recalls: from now on the model has the tools for it."""
        self.reader.take_tools()
        self.host.recall_call = self.options.recall_call

    def adopt(self, plugin: GCPlugin, config: GCConfig | None) -> None:
        """Use another strategy, and another configuration if one is given."""
        self.options.plugin = serving(plugin, self.host)
        if config is not None:
            self.options.config = config
            self.segmenter.marks_secrets = config.secrets != "off"
            self.guard.restart()
