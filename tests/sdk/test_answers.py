"""What the SDKs return goes back as the SDKs would send it."""

from __future__ import annotations

from typing import Any

import pydantic
import pytest

from ctxgc import wire
from ctxgc.core import Format
from ctxgc.testing import check_history
from tests.sdk.placement import Json, place
from tests.sdk.unions import answer_types, name_of, objects
from tests.session.build import make
from tests.wire.talk import ALL

TYPES = answer_types()


each_type = pytest.mark.parametrize(("form", "member"), TYPES, ids=name_of)


@each_type
def test_an_answer_is_read_as_what_the_provider_had_sent(form: Format, member: Any) -> None:
    for instance in objects(member):
        history = place(instance, form)
        answers = [_as_object(message, member, form) for message in history]
        assert answers != history
        assert wire.render(wire.parse_history(answers, form)) == history
        assert wire.detect_format(answers) == wire.detect_format(history)


@pytest.mark.parametrize("form", ALL)
def test_answers_appended_as_objects_are_sent_as_they_came(form: Format) -> None:
    for own, member in TYPES:
        if own != form:
            continue
        history = place(objects(member)[-1], form)
        session = make(1_000_000, "gc_none")
        session.extend([_as_object(message, member, form) for message in history], format=form)
        assert session.messages() == history
        assert check_history(session.messages(), form) == []


def _as_object(message: Json, member: Any, form: Format) -> Any:
    """Return what the SDK would have returned for a message of the history, where it returns any."""
    if form != "anthropic":
        return _built(message, member)
    return {**message, "content": [_built(block, member) for block in message["content"]]}


def _built(data: Json, member: Any) -> Any:
    """Return the SDK's object for plain data; the data where it is of another type."""
    try:
        return member.model_validate(data)
    except pydantic.ValidationError:
        return data
