"""Recall inside the loop: calls of our tools are answered here, within one answer to the client.

The client gets what the model says as it comes, except calls of our tools. When the provider's answer has
ended they are answered, the provider is asked again with the answers, and its next answer goes on where the
last one ended. What the client did not see is put back into the history that it sends next (`unfolded`), so
that the provider sees what it said, and its cache keeps the prefix.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from ctxgc.proxy.request_body import RequestBody, loads
from ctxgc.session import RECALL_TOOLS, Format

Json = dict[str, Any]
MOST_ROUNDS = 12
"""How often the provider is asked for one answer; a model that goes on recalling ends its turn there."""

_STRANGE = (KeyError, TypeError, AttributeError, IndexError)
OUR_TOOLS = frozenset(tool.name for tool in RECALL_TOOLS)


class HiddenTurn(msgspec.Struct, frozen=True, kw_only=True):
    """What the history has in place of a message as the client knows it."""

    instead: list[Json]
    results: list[Json] = []
    """Blocks for the next message of the user, which answers the client's own calls."""


class ProviderTurn(msgspec.Struct, kw_only=True):
    """One answer of the provider: what was said, the calls of our tools in it, and whether it is to go on."""

    said: list[Json] = []
    ours: list[Json] = []
    theirs: int = 0
    replies: list[Json] = []
    wants_results: bool = False

    @property
    def goes_on(self) -> bool:
        """Whether only we have something to answer."""
        return self.wants_results and bool(self.ours) and not self.theirs


class ClientReply(ABC):
    """One answer to the client, made of one or several of the provider's; `rounds` has those that ended."""

    def __init__(self) -> None:
        self.rounds: list[ProviderTurn] = []
        self._round = ProviderTurn()
        self._rest = b""

    def feed(self, chunk: bytes) -> bytes:
        """Return what the client gets of a piece of a stream."""
        self._rest += chunk.replace(b"\r\n", b"\n")
        *events, self._rest = self._rest.split(b"\n\n")
        return b"".join(self._passed(event + b"\n\n") for event in events)

    @property
    def is_plain(self) -> bool:
        """Whether the client gets what the provider said, and nothing else."""
        return len(self.rounds) < 2 and not any(each.ours for each in self.rounds)

    def rest(self) -> bytes:
        """Return what a stream that ended had left."""
        rest, self._rest = self._rest, b""
        return rest

    def _passed(self, raw: bytes) -> bytes:
        data = b"".join(line[5:].strip() for line in raw.split(b"\n") if line.startswith(b"data:"))
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            return self.other(raw)
        try:
            return self.event(event, raw) if isinstance(event, dict) else raw
        except _STRANGE:
            return raw

    def read(self, body: bytes) -> None:
        """Take in an answer that is not streamed; one that is strange is the client's to read."""
        try:
            self.whole(json.loads(body))
        except (ValueError, RecursionError, *_STRANGE):
            return

    def other(self, raw: bytes) -> bytes:
        """Return what the client gets of an event that has no data of its own."""
        return raw

    @abstractmethod
    def event(self, event: Json, raw: bytes) -> bytes:
        """Return what the client gets of an event."""

    @abstractmethod
    def whole(self, body: Json) -> None:
        """Take in an answer that is not streamed."""

    @abstractmethod
    def end_round(self) -> ProviderTurn:
        """Return the answer of the provider that has ended."""

    @abstractmethod
    def ending(self) -> bytes:
        """Return how a stream ends."""

    @abstractmethod
    def body(self) -> Json:
        """Return the whole answer, if it is not streamed."""

    @abstractmethod
    def hidden(self) -> dict[str, HiddenTurn]:
        """Return what the client did not see, by the fingerprint of the message that it knows."""


def reply_for(form: Format) -> ClientReply:
    """Return an answer to the client of a format."""
    kinds: Mapping[Format, Callable[[], ClientReply]] = {
        "anthropic": MessageReply, "openai": ChatReply, "responses": ResponseReply,
    }  # fmt: skip
    return kinds[form]()


def following(envelope: RequestBody, ended: ProviderTurn) -> bytes:
    """Return the request that goes on after an answer with calls of our tools, now answered."""
    more = [json.dumps(each).encode() for each in (*ended.said, *ended.replies)]
    return envelope.rewritten([*envelope.messages, *more])


def error_event(form: Format, text: str) -> bytes:
    """Return how a stream that began says that it cannot go on."""
    error = {"type": "api_error", "message": text}
    if form == "anthropic":
        return _named({"type": "error", "error": error})
    if form == "responses":
        return _named({"type": "error", "code": "server_error", "message": text, "param": None})
    return b"data: " + json.dumps({"error": {**error, "code": None}}).encode() + b"\n\n"


def _named(event: Json) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


# -- Anthropic's messages


class MessageReply(ClientReply):
    """An answer of Anthropic's messages API."""

    def __init__(self) -> None:
        super().__init__()
        self._blocks: dict[int, Json] = {}
        self._inputs: dict[int, str] = {}
        self._places: dict[int, int] = {}
        self._shown: list[Json] = []
        self._ending: list[tuple[Json, bytes]] = []
        self._bodies: list[Json] = []
        self._output = 0

    def event(self, event: Json, raw: bytes) -> bytes:
        """Return what the client gets of an event."""
        kind = event.get("type")
        if kind == "message_start":
            return b"" if self.rounds else raw
        if kind in ("message_delta", "message_stop"):
            self._ending.append((event, raw))
            return b""
        if kind == "content_block_start":
            self._begin(event)
        elif kind == "content_block_delta":
            self._add(event["index"], event["delta"])
        elif kind == "content_block_stop":
            self._finish(event["index"])
        else:
            return raw
        place = self._places.get(event["index"])
        if place is None:
            return b""
        return raw if place == event["index"] else _named({**event, "index": place})

    def _begin(self, event: Json) -> None:
        number, block = event["index"], dict(event["content_block"])
        self._blocks[number] = block
        if not _is_ours(block):
            self._places[number] = len(self._shown)
            self._shown.append(block)

    def _add(self, number: int, delta: Json) -> None:
        block = self._blocks[number]
        for kind in ("text", "thinking", "signature"):
            if delta.get("type") == f"{kind}_delta":
                block[kind] = block.get(kind, "") + delta[kind]
        if delta.get("type") == "input_json_delta":
            self._inputs[number] = self._inputs.get(number, "") + delta["partial_json"]
        elif delta.get("type") == "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta["citation"]]

    def _finish(self, number: int) -> None:
        given = self._inputs.pop(number, "")
        if given:
            self._blocks[number]["input"] = loads(given.encode())

    def whole(self, body: Json) -> None:
        """Take in an answer that is not streamed."""
        self._bodies.append(body)
        self._blocks = dict(enumerate(body.get("content") or ()))
        self._shown += [block for block in self._blocks.values() if not _is_ours(block)]
        self._ending = [({"delta": body, "usage": body.get("usage")}, b"")]

    def end_round(self) -> ProviderTurn:
        """Return the answer of the provider that has ended."""
        blocks = [self._blocks[number] for number in sorted(self._blocks)]
        deltas = [event["delta"] for event, _ in self._ending if "delta" in event]
        stop = next((delta.get("stop_reason") for delta in deltas), None)
        ended = ProviderTurn(
            said=[{"role": "assistant", "content": blocks}],
            ours=[block for block in blocks if _is_ours(block)],
            theirs=sum(block.get("type") == "tool_use" and not _is_ours(block) for block in blocks),
            wants_results=stop == "tool_use",
        )
        self._blocks, self._places = {}, {}
        if ended.goes_on and len(self.rounds) + 1 < MOST_ROUNDS:
            self._output += _counted(self._ending)
            self._ending = []
        self.rounds.append(ended)
        return ended

    def ending(self) -> bytes:
        """Return how a stream ends."""
        if self.is_plain:
            return b"".join(raw for _, raw in self._ending)
        return b"".join(_named(self._closed(event)) for event, _ in self._ending)

    def _closed(self, event: Json) -> Json:
        delta, usage = event.get("delta"), event.get("usage")
        if isinstance(usage, dict) and self._output:
            event = {
                **event,
                "usage": {**usage, "output_tokens": usage.get("output_tokens", 0) + self._output},
            }
        if isinstance(delta, dict) and self.rounds[-1].goes_on:
            event = {**event, "delta": {**delta, "stop_reason": "end_turn"}}
        return event

    def body(self) -> Json:
        """Return the whole answer, if it is not streamed."""
        ((event, _),) = self._ending
        closed = self._closed(event)
        told = {"content": self._shown, "id": self._bodies[0].get("id"), "usage": closed["usage"]}
        return {**closed["delta"], **told}

    def hidden(self) -> dict[str, HiddenTurn]:
        """Return what the client did not see, by the fingerprint of the message that it knows."""
        if not any(each.ours for each in self.rounds):
            return {}
        *before, last = self.rounds
        instead = [message for each in before for message in (*each.said, *each.replies)]
        shown = {"role": "assistant", "content": self._shown}
        if last.goes_on:
            # The turn ended without an answer to its last calls.
            blocks = [block for block in last.said[0]["content"] if not _is_ours(block)]
            tail = [{"role": "assistant", "content": blocks}] if blocks else []
            return {fingerprint(shown, "anthropic"): HiddenTurn(instead=[*instead, *tail])}
        results = [block for reply in last.replies for block in reply["content"]]
        turn = HiddenTurn(instead=[*instead, *last.said], results=results)
        return {fingerprint(shown, "anthropic"): turn}


def _is_ours(block: Json) -> bool:
    return block.get("type") == "tool_use" and block.get("name") in OUR_TOOLS


def _counted(ending: Sequence[tuple[Json, bytes]]) -> int:
    usages = (event.get("usage") for event, _ in ending)
    return sum(usage.get("output_tokens", 0) for usage in usages if isinstance(usage, dict))


# -- OpenAI's chat completions


class ChatReply(ClientReply):
    """An answer of OpenAI's chat completions."""

    def __init__(self) -> None:
        super().__init__()
        self._id: str | None = None
        self._message: Json = {"role": "assistant"}
        self._calls: dict[int, Json] = {}
        self._places: dict[int, int] = {}
        self._text = ""
        self._shown: list[Json] = []
        self._finish: str | None = None
        self._ending: list[tuple[bytes, bytes]] = []
        self._bodies: list[Json] = []

    def other(self, raw: bytes) -> bytes:
        """Hold the mark of the end back until it is the client's end."""
        if b"[DONE]" not in raw:
            return raw
        self._ending.append((raw, raw))
        return b""

    def event(self, event: Json, raw: bytes) -> bytes:
        """Return what the client gets of an event."""
        self._id = self._id or event.get("id")
        choices = event.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if choice is None:
            if "usage" not in event:
                return raw
            self._ending.append((self._told(event), raw))
            return b""
        delta = choice.get("delta") or {}
        shown = self._taken(delta)
        if choice.get("finish_reason"):
            self._finish = choice["finish_reason"]
            told = self._told({**event, "choices": [{**choice, "delta": shown}]})
            self._ending.append((told, raw))
            return b""
        if shown == delta and not self.rounds:
            return raw
        if not any(shown.values()):
            return b""
        return self._told({**event, "choices": [{**choice, "delta": shown}]})

    def _told(self, event: Json) -> bytes:
        return b"data: " + json.dumps({**event, "id": self._id}).encode() + b"\n\n"

    def _taken(self, delta: Json) -> Json:
        """Take in a delta and return what the client gets of it."""
        for name, value in delta.items():
            if name not in ("role", "tool_calls") and isinstance(value, str):
                self._message[name] = self._message.get(name, "") + value
        self._text += delta.get("content") or ""
        calls = [
            {**call, "index": self._places[call["index"]]}
            for call in delta.get("tool_calls") or ()
            if self._is_theirs(call)
        ]
        shown = {name: value for name, value in delta.items() if name != "tool_calls"}
        if self.rounds:
            shown.pop("role", None)
        return {**shown, "tool_calls": calls} if calls else shown

    def _is_theirs(self, piece: Json) -> bool:
        """Take in a piece of a call and return whether the client is to answer it."""
        number, function = piece["index"], piece.get("function") or {}
        known = self._calls.get(number)
        if known is None:
            call = {"id": piece.get("id"), "type": "function"}
            known = {**call, "function": {"name": function.get("name"), "arguments": ""}}
            self._calls[number] = known
            if not _is_our_function(known):
                self._places[number] = len(self._shown)
                self._shown.append(known)
        known["function"]["arguments"] += function.get("arguments") or ""
        return not _is_our_function(known)

    def whole(self, body: Json) -> None:
        """Take in an answer that is not streamed."""
        self._bodies.append(body)
        (choice, *_) = body["choices"]
        self._message = dict(choice["message"])
        self._calls = dict(enumerate(self._message.pop("tool_calls", None) or ()))
        self._text += self._message.get("content") or ""
        self._shown += [call for call in self._calls.values() if not _is_our_function(call)]
        self._finish = choice.get("finish_reason")

    def end_round(self) -> ProviderTurn:
        """Return the answer of the provider that has ended."""
        calls = [self._calls[number] for number in sorted(self._calls)]
        message = {"content": None, **self._message, **({"tool_calls": calls} if calls else {})}
        ours = [call for call in calls if _is_our_function(call)]
        ended = ProviderTurn(
            said=[message],
            ours=ours,
            theirs=len(calls) - len(ours),
            wants_results=self._finish == "tool_calls",
        )
        self._message, self._calls, self._places = {"role": "assistant"}, {}, {}
        if ended.goes_on and len(self.rounds) + 1 < MOST_ROUNDS:
            self._ending = []
        self.rounds.append(ended)
        return ended

    def ending(self) -> bytes:
        """Return how a stream ends."""
        if self.is_plain:
            return b"".join(raw for _, raw in self._ending)
        told = b"".join(made for made, _ in self._ending)
        cut = self.rounds[-1].goes_on
        return (
            told.replace(b'"finish_reason": "tool_calls"', b'"finish_reason": "stop"')
            if cut
            else told
        )

    def body(self) -> Json:
        """Return the whole answer, if it is not streamed."""
        last = self._bodies[-1]
        (choice, *rest) = last["choices"]
        message = {**choice["message"], "content": self._text or None}
        message.pop("tool_calls", None)
        if self._shown:
            message["tool_calls"] = self._shown
        finish = "stop" if self.rounds[-1].goes_on else choice.get("finish_reason")
        told = {**choice, "message": message, "finish_reason": finish}
        return {**last, "id": self._bodies[0].get("id"), "choices": [told, *rest]}

    def hidden(self) -> dict[str, HiddenTurn]:
        """Return what the client did not see, by the fingerprint of the message that it knows."""
        if not any(each.ours for each in self.rounds):
            return {}
        *before, last = self.rounds
        instead = [message for each in before for message in (*each.said, *each.replies)]
        shown = {"content": self._text, "tool_calls": self._shown}
        if last.goes_on:
            said = {name: value for name, value in last.said[0].items() if name != "tool_calls"}
            tail = [said] if said.get("content") else []
        else:
            tail = [*last.said, *last.replies]
        return {fingerprint(shown, "openai"): HiddenTurn(instead=[*instead, *tail])}


def _is_our_function(call: Json) -> bool:
    function = call.get("function")
    return isinstance(function, dict) and function.get("name") in OUR_TOOLS


# -- OpenAI's responses


class ResponseReply(ClientReply):
    """An answer of OpenAI's Responses API."""

    def __init__(self) -> None:
        super().__init__()
        self._id: str | None = None
        self._items: dict[int, Json] = {}
        self._held: set[int] = set()
        self._places: dict[int, int] = {}
        self._shown: list[Json] = []
        self._opened = 0
        self._sent = 0
        self._ending: Json = {}
        self._last = b""

    def event(self, event: Json, raw: bytes) -> bytes:
        """Return what the client gets of an event."""
        kind = event.get("type", "")
        if kind in ("response.completed", "response.incomplete", "response.failed"):
            self._ending, self._last = event, raw
            return b""
        if kind in ("response.created", "response.in_progress", "response.queued"):
            self._id = self._id or (event.get("response") or {}).get("id")
            return b"" if self.rounds else self._numbered(event, raw)
        number = event.get("output_index")
        if not isinstance(number, int):
            return self._numbered(event, raw)
        if kind == "response.output_item.added":
            self._begin(number, event["item"])
        elif kind == "response.output_item.done":
            self._items[number] = event["item"]
            if number not in self._held:
                self._shown.append(event["item"])
        if number in self._held:
            return b""
        place = self._places[number]
        return self._numbered(event if place == number else {**event, "output_index": place}, raw)

    def _begin(self, number: int, item: Json) -> None:
        if _is_our_item(item):
            self._held.add(number)
        else:
            self._places[number] = self._opened
            self._opened += 1

    def _numbered(self, event: Json, raw: bytes) -> bytes:
        """Return an event with the number that it has for the client."""
        number, self._sent = self._sent, self._sent + 1
        is_numbered = event.get("sequence_number", number) == number
        if is_numbered and not self._held and not self.rounds:
            return raw
        return _named({**event, "sequence_number": number})

    def whole(self, body: Json) -> None:
        """Take in an answer that is not streamed."""
        self._id = self._id or body.get("id")
        self._items = dict(enumerate(body.get("output") or ()))
        self._shown += [item for item in self._items.values() if not _is_our_item(item)]
        self._ending = {"type": f"response.{body.get('status')}", "response": body}

    def end_round(self) -> ProviderTurn:
        """Return the answer of the provider that has ended."""
        items = [self._items[number] for number in sorted(self._items)]
        calls = [
            item for item in items if item.get("type") in ("function_call", "custom_tool_call")
        ]
        ours = [item for item in items if _is_our_item(item)]
        ended = ProviderTurn(
            said=items,
            ours=ours,
            theirs=len(calls) - len(ours),
            wants_results=self._ending.get("type") == "response.completed",
        )
        self._items, self._held, self._places = {}, set(), {}
        self.rounds.append(ended)
        return ended

    def ending(self) -> bytes:
        """Return how a stream ends."""
        if not self._ending or self.is_plain:
            return self._last
        number = self._sent
        return _named({**self._ending, "response": self.body(), "sequence_number": number})

    def body(self) -> Json:
        """Return the whole answer, if it is not streamed."""
        return {**self._ending["response"], "id": self._id, "output": self._shown}

    def hidden(self) -> dict[str, HiddenTurn]:
        """Return what the client did not see, by the fingerprint of the item next to it."""
        found: dict[str, HiddenTurn] = {}
        if not any(each.ours for each in self.rounds):
            return found
        instead: list[Json] = []
        last: str | None = None
        for each in self.rounds:
            answers = {reply["call_id"]: reply for reply in each.replies}
            for item in each.said:
                if _is_our_item(item):
                    answer = answers.get(item["call_id"])
                    instead += [] if answer is None else [item, answer]
                else:
                    last = fingerprint(item, "responses")
                    found[last] = HiddenTurn(instead=[*instead, item])
                    instead = []
        if instead and last is not None:
            found[last] = HiddenTurn(instead=[*found[last].instead, *instead])
        return found


def _is_our_item(item: Json) -> bool:
    return item.get("type") == "function_call" and item.get("name") in OUR_TOOLS


# -- Put back


def fingerprint(message: Any, form: Format) -> str:
    """Return what a message of the model is known by, however the client writes it down."""
    said: list[Any] = []
    if not isinstance(message, dict):
        return ""
    if form == "responses":
        known = message.get("call_id") or message.get("encrypted_content") or _texts(message)
        said = [message.get("type", "message"), known]
    else:
        said = [_texts(message), *(call.get("id") for call in message.get("tool_calls") or ())]
        content = message.get("content")
        for block in content if isinstance(content, list) else ():
            said += [block.get("id"), block.get("signature")] if isinstance(block, dict) else []
    plain = json.dumps([each for each in said if each])
    return blake2b(plain.encode(), digest_size=16).hexdigest()


def _texts(message: Json) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content.strip()
    blocks = content if isinstance(content, list) else message.get("summary") or ()
    texts = [block.get("text") for block in blocks if isinstance(block, dict)]
    return "".join(text for text in texts if isinstance(text, str)).strip()


def unfolded(envelope: RequestBody, hidden: Mapping[str, HiddenTurn]) -> RequestBody:
    """Return a request with all that its client did not see of the model's turns."""
    if not hidden:
        return envelope
    messages = list(_unfolded(envelope, hidden))
    if messages == envelope.messages:
        return envelope
    return RequestBody(envelope.rewritten(messages), envelope.form)


def _unfolded(envelope: RequestBody, hidden: Mapping[str, HiddenTurn]) -> Iterator[bytes]:
    results: list[Json] = []
    for raw in envelope.messages:
        turn = hidden.get(_known(raw, envelope.form))
        if turn is None:
            yield _with_results(raw, results)
            results = []
            continue
        yield from (json.dumps(each).encode() for each in turn.instead)
        results = turn.results


def _known(raw: bytes, form: Format) -> str:
    if form != "responses" and b'"assistant"' not in raw:
        return ""
    if form == "responses" and b'"user"' in raw:
        return ""
    return fingerprint(loads(raw), form)


def _with_results(raw: bytes, results: Sequence[Json]) -> bytes:
    """Return the user's message with the results of our calls before those of the client's."""
    message = loads(raw) if results else None
    if not isinstance(message, dict) or not isinstance(message.get("content"), list):
        return raw
    return json.dumps({**message, "content": [*results, *message["content"]]}).encode()


Answer = Callable[[Json], Json | None]


def answer_all(ended: ProviderTurn, answer: Answer, form: Format) -> None:
    """Answer all calls of our tools in a round."""
    replies = [reply for call in ended.ours if (reply := answer(call)) is not None]
    if form == "anthropic" and replies:
        results = [block for reply in replies for block in reply["content"]]
        replies = [{"role": "user", "content": results}]
    ended.replies = replies
