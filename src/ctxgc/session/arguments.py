"""Arguments: what a caller may hand to a session, checked before anything changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

import msgspec

from ctxgc.config import GCConfig, unknown_key
from ctxgc.core.kinds import SegmentType, Tier
from ctxgc.core.message import FORMATS, Format
from ctxgc.core.segment import ContextSegment
from ctxgc.errors import InputError, MessageError
from ctxgc.session.view import wrong_format
from ctxgc.stores import SearchFilters
from ctxgc.strategies.base import GCPlugin

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
