"""Notification templates: which fields they may use, and how they are filled in."""

from __future__ import annotations

import string

from ctxgc.config.keys import unknown_key
from ctxgc.errors import ConfigError

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
