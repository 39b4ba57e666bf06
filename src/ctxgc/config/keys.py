"""Unknown names and wrong values, as errors that help."""

from __future__ import annotations

import difflib
import string
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from ctxgc.config.secrets import shown
from ctxgc.errors import ConfigError

T = TypeVar("T", bound=msgspec.Struct)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that `word` was most likely meant to be, if any is near."""
    found = difflib.get_close_matches(word.lower(), list(known), n=1, cutoff=0.55)
    return found[0] if found else None


def unknown_key(key: str, known: Iterable[str], what: str = "configuration key") -> ConfigError:
    """Return the error for an unknown name, with the nearest known one."""
    names = sorted(known)
    guess = nearest(key, names)
    hint = f'did you mean "{guess}"?' if guess else f"known: {', '.join(names)}"
    return ConfigError(f'unknown {what} "{key}"', hint=hint, key=key, nearest=guess, known=names)


def reject_unknown(keys: Iterable[str], known: Iterable[str]) -> None:
    """Raise ConfigError for the first key that is not known."""
    known = set(known)
    for key in keys:
        if key not in known:
            raise unknown_key(str(key), known)


def build(kind: type[T], values: Mapping[str, Any]) -> T:
    """Return a `kind` with these values, each checked against its declared type and range."""
    reject_unknown(values, kind.__struct_fields__)
    try:
        return msgspec.convert(dict(values), kind)
    except msgspec.ValidationError as error:
        raise _wrong_value(str(error), values, kind) from None


def _wrong_value(
    complaint: str, values: Mapping[str, Any], kind: type[msgspec.Struct]
) -> ConfigError:
    """Return the error for msgspec's complaint, naming the key and a value that may be shown."""
    said, key = complaint.partition(" - at ")[0], _key_of(complaint)
    value = values.get(key)
    is_plain = value is None or isinstance(value, (bool, int, float, str))
    listed = choices(complaint, kind)
    # If the choices are listed, the complaint already names the wrong word.
    got = f" (it is {shown(value, key)!r})" if is_plain and not listed else ""
    hint = listed or _unquoted(value, key, kind) or f'correct "{key}"'
    return ConfigError(f"{key}: {said[:1].lower()}{said[1:]}{got}", hint=hint, key=key)


def _unquoted(value: object, key: str, kind: type[msgspec.Struct]) -> str:
    """Return a hint if a text would be valid without its quotes, such as "75"; else nothing."""
    if not isinstance(value, str):
        return ""
    try:
        msgspec.convert(value, get_type_hints(kind, include_extras=True)[key], strict=False)
    except (msgspec.ValidationError, KeyError):
        return ""
    return "write it without quotes"


def choices(complaint: str, kind: type[msgspec.Struct]) -> str:
    """Return a hint that lists the values the key of msgspec's complaint may have; empty without a list."""
    declared = get_type_hints(kind).get(_key_of(complaint))
    words = get_args(declared) if get_origin(declared) is Literal else ()
    return f"use one of {', '.join(map(str, words))}" if words else ""


def _key_of(complaint: str) -> str:
    place = complaint.partition(" - at ")[2]
    return place[place.find("$") :].strip("`").removeprefix("$.").split("[")[0].split(".")[0]


# -- Notification templates


NOTICE_FIELDS: tuple[str, ...] = (
    "items_collected",
    "tokens_before",
    "tokens_after",
    "tokens_freed",
    "plugin_name",
    "reason",
)


def check_template(template: str) -> str:
    """Return the template if it names known fields only.

    Raises:
        ConfigError: a field is unknown, has an attribute or index, or a brace is unbalanced.
    """
    for field in _fields(template):
        if field not in NOTICE_FIELDS:
            error = unknown_key(field, NOTICE_FIELDS, "field in notification_template")
            error.details.update(key="notification_template", field=field)
            raise error
    return template


def render_notice(template: str, **fields: str | int) -> str:
    """Return the template filled in; `fields` gives a value for each of NOTICE_FIELDS."""
    return check_template(template).format_map(fields)


def _fields(template: str) -> list[str]:
    try:
        parsed = list(string.Formatter().parse(template))
    except ValueError as error:
        raise ConfigError(
            f"notification_template is not a format string: {error}",
            hint="write {{ and }} for literal braces",
            key="notification_template",
        ) from None
    if any(spec or conversion for _, _, spec, conversion in parsed):
        raise ConfigError(
            "notification_template: fields take no format or conversion",
            hint="write {tokens_freed} rather than {tokens_freed:,}",
            key="notification_template",
        )
    return [field for _, field, _, _ in parsed if field is not None]
