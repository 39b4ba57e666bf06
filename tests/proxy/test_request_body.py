"""A body is taken apart and put together again without changing a byte that nobody asked to change."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxgc.proxy.request_body import KnownMessages, RequestBody, UnreadableError, canonical, spliced
from ctxgc.session import PlacedMessage

BODY = b"""{ "model" : "m",
 "messages":[ {"role":"user","content":"\\ud83d alone, \\u00e4, 1e5"} ,{"role":"assistant","content": 1.0} ],
 "tools" : [ ], "x":[{"messages":[{"role":"user"}]}]}"""


def test_messages_and_fields_are_the_bytes_of_the_body() -> None:
    envelope = RequestBody(BODY, "openai")
    assert envelope.messages == [
        b'{"role":"user","content":"\\ud83d alone, \\u00e4, 1e5"}',
        b'{"role":"assistant","content": 1.0}',
    ]
    assert envelope.raw("x") == b'[{"messages":[{"role":"user"}]}]'
    assert (envelope.text("model"), envelope.text("x"), envelope.raw("y")) == ("m", "", None)


def test_a_rewritten_body_differs_only_where_it_must() -> None:
    envelope = RequestBody(BODY, "openai")
    tool = {"name": "t"}
    expected = BODY.replace(BODY[BODY.index(b"[") : BODY.index(b"],") + 1], b'[{"a":1}]', 1)
    assert envelope.rewritten([b'{"a":1}']) == expected
    assert envelope.with_tools([tool]) == BODY.replace(b"[ ]", b'[{"name": "t"}]')
    bare = RequestBody(b'{"messages":[1]}', "openai")
    assert bare.with_tools([tool]) == b'{"messages":[1],"tools":[{"name": "t"}]}'


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[1]",
        b'{"messages":"x"}',
        b'{"input":[]}',
        b'{"messages":[1],"messages":[2]}',
        b'{"messages":[1,]}',
    ],
)
def test_a_body_that_is_not_a_request_with_messages_is_refused(body: bytes) -> None:
    with pytest.raises(UnreadableError):
        RequestBody(body, "anthropic")


def test_a_message_is_known_again_when_its_cache_mark_moved_or_its_text_became_a_block() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    plain = {"role": "user", "content": "hi \ud800"}
    block = {"role": "user", "content": [{"type": "text", "text": "hi \ud800", **mark}]}
    assert canonical(json.dumps(plain).encode()) == canonical(json.dumps(block, indent=2).encode())
    other = {
        "role": "user",
        "content": [{"type": "text", "text": "hi"}, {"type": "text", "text": ""}],
    }
    assert (
        canonical(json.dumps(other).encode()) == json.dumps(other, separators=(",", ":")).encode()
    )
    known = KnownMessages()
    raw = json.dumps(block).encode()
    assert known.read([raw])[0] is known.read([b'{"role":"user","content":"x"}', raw])[1]


def _message(*blocks: Any) -> bytes:
    return json.dumps({"role": "user", "content": list(blocks)}).encode()


def test_the_cache_mark_of_what_left_goes_to_the_message_before_it() -> None:
    mark = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    text = {"type": "text", "text": "one"}
    originals = [_message(text), _message({"type": "text", "text": "two", **mark}), _message(text)]
    whole = [PlacedMessage(number=n, is_whole=True, json=b"") for n in (0, 2)]
    assert [json.loads(each) for each in spliced(originals, whole)] == [
        {"role": "user", "content": [{**text, **mark}]},
        {"role": "user", "content": [text]},
    ]
    edited = PlacedMessage(number=1, is_whole=False, json=b'{"role":"user","content":"short"}')
    first, second = spliced(originals, [whole[0], edited])
    assert first == originals[0]
    assert json.loads(second)["content"] == [{"type": "text", "text": "short", **mark}]
