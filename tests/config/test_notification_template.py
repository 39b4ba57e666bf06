"""Notification templates."""

from __future__ import annotations

import pytest

from ctxgc.config import NOTICE_FIELDS, check_template, render_notice
from ctxgc.errors import ConfigError


def test_every_known_field_is_filled_in() -> None:
    template = " ".join(f"{{{field}}}" for field in NOTICE_FIELDS)
    values: dict[str, str | int] = {field: number for number, field in enumerate(NOTICE_FIELDS)}
    assert render_notice(template, **values) == "0 1 2 3 4 5"


def test_doubled_braces_stay_literal() -> None:
    assert check_template("{{kept}}") == "{{kept}}"
    assert render_notice("{{kept}} {reason}", reason="manual") == "{kept} manual"


def test_a_conversion_is_refused() -> None:
    with pytest.raises(ConfigError, match="no format or conversion"):
        check_template("{reason!r}")
