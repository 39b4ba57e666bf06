"""Unknown names and wrong values, as errors that help."""

from __future__ import annotations

import difflib
import re
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


_KINDS = {
    "int": "a whole number", "float": "a number", "str": "a text", "bool": "true or false",
    "array": "a list", "object": "an object", "null": "null",
}  # fmt: skip
_BOUNDS = {">=": "at least", "<=": "at most", ">": "above", "<": "below"}
_EXPECTED = re.compile(
    r"Expected `(?P<kinds>[^`]+)`(?: (?P<bound>[<>]=?) (?P<edge>\S+))?(?:, got `(?P<got>\w+)`)?"
)
_OTHER_WORDS = (
    (re.compile(r"Invalid enum value '?(.*?)'?"), 'cannot be "{}"'),
    (re.compile(r"Object missing required field `(.*)`"), 'lacks "{}"'),
    (re.compile(r"Object contains unknown field `(.*)`"), 'has an unknown key "{}"'),
)


def in_words(complaint: str, value: str = "") -> str:
    """Return msgspec's complaint as what the value must be, and what it is as far as it may be shown."""
    said = complaint.partition(" - at ")[0]
    for pattern, words in _OTHER_WORDS:
        if other := pattern.fullmatch(said):
            return words.format(other[1])
    found = _EXPECTED.fullmatch(said)
    if found is None:
        return f"is wrong: {said[:1].lower()}{said[1:]}"
    must = " or ".join(_KINDS.get(kind, kind) for kind in found["kinds"].split(" | "))
    if found["bound"]:
        must = f"{_BOUNDS[found['bound']]} {found['edge']}"
    got = value or _KINDS.get(found["got"] or "", "")
    return f"must be {must}, got {got}" if got else f"must be {must}"


def located(error: ConfigError, place: str) -> ConfigError:
    """Return the error with the file or the variable that the wrong value comes from."""
    if not place or error.message.startswith(place):
        return error
    return ConfigError(f"{place}: {error.message}", hint=error.hint, **error.details)


def _wrong_value(
    complaint: str, values: Mapping[str, Any], kind: type[msgspec.Struct]
) -> ConfigError:
    """Return the error for msgspec's complaint, naming the key and a value that may be shown."""
    key = _key_of(complaint)
    value, listed = values.get(key), choices(complaint, kind)
    is_plain = key in values and (value is None or isinstance(value, (bool, int, float, str)))
    got = repr(shown(value, key)) if is_plain else ""
    hint = listed or _unquoted(value, key, kind) or f'correct "{key}"'
    return ConfigError(f"{key} {in_words(complaint, got)}", hint=hint, key=key)


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
