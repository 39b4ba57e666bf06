"""Setting a session up: from what was asked for, the environment, the file and the defaults."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, get_args

import msgspec

from ctxgc.config import (
    DEFAULT_PLUGIN,
    GCConfig,
    SessionSettings,
    find_gc_file,
    read_gc_file,
    unknown_key,
)
from ctxgc.core import FORMATS, ContextSegment, Format, SegmentType, Tier
from ctxgc.economics import PriceSheet, price_sheet
from ctxgc.errors import InputError, MessageError
from ctxgc.session.archive import Archive
from ctxgc.session.state import Workings, reopen
from ctxgc.session.view import wrong_format
from ctxgc.stores import SearchFilters, Store, consistent_read, open_store
from ctxgc.strategies import GCPlugin, load_gc_plugin
from ctxgc.tokens import CountingCache, TokenCounter, counter_for

# -- Arguments: what a caller may hand to a session, checked before anything changes


_KINDS: dict[str, tuple[str, ...]] = {"type": get_args(SegmentType), "tier": get_args(Tier)}


def checked_text(value: str | None, field: str) -> str | None:
    """Return a text that is not empty, or None."""
    given: object = value
    if given is not None and not (isinstance(given, str) and given):
        raise InputError(
            f"{field} cannot be {value!r}", hint="give a text, or None for none", field=field
        )
    return value


def check_format(asked: Format | None, known: Format | None) -> None:
    """Make sure that a format is one that there is, and the session's own.

    Raises:
        MessageError: it is not.
    """
    if asked is not None and asked not in FORMATS:
        raise MessageError(
            f"`format` {asked!r} is unknown",
            hint=f"known formats: {', '.join(FORMATS)}",
            field="format",
        )
    if asked is not None and known is not None and asked != known:
        raise wrong_format(known, asked)


def checked_config(config: GCConfig) -> GCConfig:
    """Return what is a configuration, and not a dict that might be one."""
    given: object = config
    if not isinstance(given, GCConfig):
        raise InputError(
            f"config is of the type {type(config).__name__}",
            hint="pass GCConfig(threshold_percent=75.0, ...)",
            field="config",
        )
    return given


def checked_plugin(plugin: GCPlugin) -> GCPlugin:
    """Return what has everything that a plugin needs."""
    given: object = plugin
    if not isinstance(given, GCPlugin):
        raise InputError(
            f"plugin is of the type {type(plugin).__name__}, which is no GCPlugin",
            hint="pass a name, or an object with name, initialize, shutdown, should_collect, collect",
            field="plugin",
        )
    return given


def checked_ids(ids: Iterable[str], field: str) -> list[str]:
    """Return ids that came as a list; a single text is no list of its letters."""
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
    """Return filters whose every key and value somebody knows."""
    if filters is None or isinstance(filters, SearchFilters):
        return filters
    if not isinstance(filters, Mapping):
        raise InputError(
            f"filters is of the type {type(filters).__name__}", hint="give a dict", field="filters"
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


DEFAULT_STORE = "json:artifacts/context_stash.json"
DEFAULT_PRICES = "anthropic-5m"


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


def set_up(asked: SessionSetup) -> Workings:
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

    return consistent_read(store, name, read)


def _limit(asked: SessionSetup, said: SessionSettings, archive: Archive) -> int:
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
