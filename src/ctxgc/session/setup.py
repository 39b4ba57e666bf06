"""Setting a session up: from what was asked for, the environment, the file and the defaults."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from ctxgc.config import DEFAULT_PLUGIN, GCConfig, SessionSettings, find_gc_file, read_gc_file
from ctxgc.economics import PriceSheet, price_sheet
from ctxgc.errors import InputError
from ctxgc.plugins import load_gc_plugin
from ctxgc.session.archive import Archive
from ctxgc.session.arguments import checked_config, checked_plugin, checked_text
from ctxgc.session.restoring import reopen
from ctxgc.session.workings import Workings
from ctxgc.stores import Store, open_store
from ctxgc.stores.moment import in_one_moment
from ctxgc.strategies.base import GCPlugin
from ctxgc.tokens import CountingCache, TokenCounter, counter_for

DEFAULT_STORE = "json:artifacts/context_stash.json"
DEFAULT_PRICES = "anthropic-5m"


class Setup(msgspec.Struct, frozen=True, kw_only=True):
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


def set_up(asked: Setup) -> Workings:
    """Return the workings of a new session, or of the one that the store holds under this id.

    Raises:
        ConfigError: something in one of the places is wrong.
        InputError: nobody says how large the window is.
    """
    said = SessionSettings.from_env()
    path = find_gc_file()
    spec = read_gc_file(path) if path is not None else None
    if asked.config is not None:
        config = checked_config(asked.config)
    else:
        config = spec.config() if spec is not None else GCConfig()
    named = asked.plugin or said.plugin or (spec.plugin if spec is not None else DEFAULT_PLUGIN)
    plugin = (
        load_gc_plugin(named, config.plugin_config)
        if isinstance(named, str)
        else checked_plugin(named)
    )
    store = open_store(asked.store or said.store or DEFAULT_STORE)
    name = checked_text(asked.session_id, "session_id") or uuid.uuid4().hex
    # CountingCache has a length, so an empty one must not be taken for a missing one.
    counter = asked.counter if asked.counter is not None else counter_for(asked.model)
    prices = price_sheet(asked.prices or said.prices or DEFAULT_PRICES)

    def read() -> Workings:
        archive = Archive(store, name)
        workings = Workings(
            context_limit=_limit(asked, said, archive),
            config=config,
            plugin=plugin,
            archive=archive,
            prices=prices,
            counter=CountingCache(counter),
            model=asked.model,
            recall_call=asked.recall_call,
            clock=asked.clock,
        )
        if archive.is_known:
            reopen(workings)
        return workings

    return in_one_moment(store, name, read)


def _limit(asked: Setup, said: SessionSettings, archive: Archive) -> int:
    limit = asked.context_limit
    if limit is None:
        limit = said.context_limit or archive.load_state().get("context_limit")
    if limit is None:
        raise InputError(
            "context_limit is missing",
            hint="pass the size of the model's window, or set CTXGC_CONTEXT_LIMIT",
            field="context_limit",
        )
    return limit
