from __future__ import annotations

import base64
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ctxgc.stores.export import masked_document

KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
RANDOM = "q9W8e7R6t5Y4u3I2o1P0a9S8d7F6"
SHOWN = "[secret:github-token]"

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=20,
)


def test_keys_are_masked_wherever_they_stand() -> None:
    doc = {"text": f"a {KEY}", "n": 1, "deep": [{"more": [KEY, None]}], "tags": [KEY]}
    assert masked_document("segments", doc) == {
        "text": f"a {SHOWN}", "n": 1, "deep": [{"more": [SHOWN, None]}], "tags": [SHOWN],
    }  # fmt: skip


def test_json_in_a_string_stays_json() -> None:
    """A URL's password may hold quotes; masked as plain text, the message would be broken."""
    data: dict[str, Any] = {
        "content": 'see db://me:a"b\\c@host',
        "arguments": json.dumps({"k": KEY}),
    }
    doc = {"message_id": "m", "format": "openai", "data": json.dumps(data)}
    masked = json.loads(masked_document("messages", doc)["data"])
    assert masked["content"] == "see db://me:[secret:url-password]@host"
    assert json.loads(masked["arguments"]) == {"k": SHOWN}


def test_the_name_of_a_value_counts() -> None:
    doc = {"input": {"api_key": RANDOM, "colour": RANDOM}}
    masked = masked_document("events", doc)
    assert masked == {"input": {"api_key": "[secret:assigned]", "colour": RANDOM}}


def test_messages_kept_as_bytes_are_masked_inside() -> None:
    def message(content: str) -> dict[str, Any]:
        source = json.dumps({"role": "user", "content": content}).encode()
        return {"format": "openai", "source": base64.b64encode(source).decode()}

    assert masked_document("messages", message(f"x {KEY}")) == message(f"x {SHOWN}")
    assert masked_document("messages", message("x")) == message("x")
    odd = {"format": "openai", "source": "no base64!"}
    assert masked_document("messages", odd) == odd


def test_the_books_of_a_session_are_left_alone() -> None:
    state = {"secret": "00112233445566778899aabbccddeeff"}
    assert masked_document("state", state) is state


@given(st.dictionaries(st.text(max_size=6), PLAIN))
def test_what_holds_no_key_stays_as_it_is(doc: dict[str, Any]) -> None:
    assert masked_document("events", doc) == doc
