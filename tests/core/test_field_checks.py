"""The checks that are not a segment's own."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from enum import StrEnum
from typing import Any

import pytest

from ctxgc.core import checked_time
from ctxgc.errors import InputError
from tests.core.build import NOW, seg


def test_a_time_with_any_zone_passes() -> None:
    there = NOW.astimezone(timezone(timedelta(hours=9)))
    assert checked_time("now", there) is there


@pytest.mark.parametrize("value", [datetime(2026, 1, 1), "2026-01-01", None, 7])  # noqa: DTZ001
def test_a_time_without_a_zone_is_refused_by_name(value: Any) -> None:
    with pytest.raises(InputError) as caught:
        checked_time("now", value)
    assert caught.value.details == {"field": "now"}
    assert "time zone" in caught.value.hint


def test_a_subclass_of_the_right_kind_passes() -> None:
    class Word(StrEnum):
        LOG = "log"

    assert seg("a", type=Word.LOG).type == "log"
