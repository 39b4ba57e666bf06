"""Calls of our tools are answered inside one answer to the client, who notices nothing of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ctxgc.testing import RecordedRequest, ScriptedModel, StrictServer, ToolCall, Turn
from tests.proxy.agents import SYSTEM, openai_history, output
from tests.proxy.places import anthropic_at, openai_at, proxied

LIMIT = 12_000
STEPS = 16
HANDLE = re.compile(r"h-[a-z2-7]{16}")
OURS = ["context_recall", "context_search"]
RESULTS = {output(number) for number in range(STEPS)}
FORMS = ["anthropic", "openai", "responses"]


def recall(request: RecordedRequest) -> ToolCall:
    return ToolCall("context_recall", {"handle": HANDLE.findall(request.raw.decode())[0]})


def thinks_and_recalls(request: RecordedRequest) -> Turn:
    thinking = "hm" if request.format == "anthropic" else ""
    return Turn(thinking=thinking, text="I look. ", tool_calls=(recall(request),))


def recalls_and_reads(request: RecordedRequest) -> Turn:
    read = ToolCall("read", {"path": "x.py"}, id="own_1")
    return Turn(text="Both. ", tool_calls=(recall(request), read))


def found(request: RecordedRequest) -> Turn:
    """Say what came back: the result of the last call of our tool."""
    said = json.dumps(request.messages, ensure_ascii=False)
    return Turn(text="back" if any(json.dumps(r)[1:-1] in said for r in RESULTS) else "missing")


class Agent:
    """An agent of one format that keeps its history as its SDK gives it back."""

    def __init__(self, form: str, url: str, *, stream: bool) -> None:
        self.form, self.url, self.stream = form, url, stream
        self.history: list[Any] = list(_history(form, 0))

    def work(self, first: int = 1) -> None:
        for steps in range(first, STEPS + 1):
            self.history = list(_history(self.form, steps))
            self.ask()
        self.history = list(_history(self.form, STEPS))

    def ask(self) -> dict[str, Any]:
        """Send the history, take the answer in, and return it."""
        body = {"anthropic": self._claude, "openai": self._chat, "responses": self._responses}[
            self.form
        ]()
        if self.form == "anthropic":
            self.history.append({"role": "assistant", "content": body["content"]})
        elif self.form == "openai":
            message = body["choices"][0]["message"]
            names = ("role", "content", "tool_calls")
            self.history.append({n: message[n] for n in names if message.get(n)})
        else:
            self.history += body["output"]
        return body

    def answer(self, call_id: str, text: str) -> None:
        if self.form == "anthropic":
            result = {"type": "tool_result", "tool_use_id": call_id, "content": text}
            self.history.append({"role": "user", "content": [result]})
        elif self.form == "openai":
            self.history.append({"role": "tool", "tool_call_id": call_id, "content": text})
        else:
            self.history.append(
                {"type": "function_call_output", "call_id": call_id, "output": text}
            )

    def say(self, text: str) -> None:
        self.history.append({"role": "user", "content": text})

    def _claude(self) -> dict[str, Any]:
        tool = {"name": "read", "input_schema": {"type": "object"}}
        asked: dict[str, Any] = {
            "model": "claude-sonnet-5", "max_tokens": 4_000, "system": SYSTEM, "tools": [tool],
            "messages": self.history, "extra_headers": {"x-ctxgc-session": "s"},
        }  # fmt: skip
        with anthropic_at(self.url) as client:
            if self.stream:
                with client.messages.stream(**asked) as stream:
                    return stream.get_final_message().to_dict()
            return client.messages.create(**asked).to_dict()

    def _chat(self) -> dict[str, Any]:
        tool = {"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}
        asked: dict[str, Any] = {
            "model": "gpt-4o", "messages": self.history, "tools": [tool],
            "extra_headers": {"x-ctxgc-session": "s"},
        }  # fmt: skip
        with openai_at(self.url) as client:
            if self.stream:
                usage = {"include_usage": True}
                with client.chat.completions.stream(**asked, stream_options=usage) as stream:
                    return stream.get_final_completion().to_dict()
            return client.chat.completions.create(**asked).to_dict()

    def _responses(self) -> dict[str, Any]:
        tool = {"type": "function", "name": "read", "parameters": {"type": "object"}}
        asked: dict[str, Any] = {
            "model": "gpt-5", "input": self.history, "tools": [tool], "store": False,
            "extra_headers": {"x-ctxgc-session": "s"},
        }  # fmt: skip
        with openai_at(self.url) as client:
            if self.stream:
                with client.responses.stream(**asked) as stream:
                    return stream.get_final_response().to_dict()
            return client.responses.create(**asked).to_dict()


def _history(form: str, steps: int) -> Iterator[Any]:
    if form != "anthropic":
        yield from openai_history(steps, form)
        return
    yield {"role": "user", "content": "read all files"}
    for number in range(steps):
        call = {"type": "tool_use", "id": f"t{number}", "name": "read", "input": {}}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": output(number)}
        yield {"role": "assistant", "content": [call]}
        yield {"role": "user", "content": [result]}


def tools_of(request: RecordedRequest) -> list[str]:
    return [(tool.get("function") or tool)["name"] for tool in request.body["tools"]]


def text_of(body: dict[str, Any]) -> str:
    if "content" in body:
        return "".join(block.get("text", "") for block in body["content"])
    if "choices" in body:
        return str(body["choices"][0]["message"].get("content") or "")
    texts = [item["content"][0]["text"] for item in body["output"] if item["type"] == "message"]
    return "".join(texts)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_a_recall_is_answered_inside_the_answer(form: str, stream: bool) -> None:
    model = ScriptedModel(then="fine")
    with StrictServer(model) as provider, proxied(provider, context_limit=LIMIT) as proxy:
        agent = Agent(form, proxy.url, stream=stream)
        agent.work()
        sent = [tools_of(request) for request in provider.requests]
        first = sent.index(["read", *OURS])
        assert sent == [["read"]] * first + [["read", *OURS]] * (STEPS - first)
        assert HANDLE.search(provider.requests[first - 1].raw.decode()) is None
        model.extend([thinks_and_recalls, found])
        body = agent.ask()
        assert text_of(body) == "I look. back"
        assert "context_recall" not in json.dumps(agent.history[-1])
        went_on = provider.requests[-1]
        agent.say("and now?")
        assert text_of(agent.ask()) == "fine"
        # The provider sees what it said, in the order in which it said it.
        assert provider.requests[-1].messages[: len(went_on.messages)] == went_on.messages
        assert provider.refusals == []
        assert "ctxgc_proxy_recalls_total 1" in httpx2.get(f"{proxy.url}/metrics").text


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_a_recall_next_to_the_clients_own_call_waits_for_the_clients_result(
    form: str, stream: bool, tmp_path: Path
) -> None:
    model = ScriptedModel(then="fine")
    store = f"sqlite:{tmp_path / 'stash.db'}"
    with StrictServer(model) as provider:
        with proxied(provider, context_limit=LIMIT, store=store) as proxy:
            agent = Agent(form, proxy.url, stream=stream)
            agent.work()
            model.extend([recalls_and_reads, found])
            body = agent.ask()
            assert text_of(body) == "Both. "
            assert json.dumps(body).count("own_1") >= 1
            agent.answer("own_1", "x = 1")
        # What the client did not see survives a restart of the proxy.
        with proxied(provider, context_limit=LIMIT, store=store) as proxy:
            agent.url = proxy.url
            assert text_of(agent.ask()) == "back"
        assert provider.refusals == []


def test_without_recall_no_tool_is_added_and_no_handle_named() -> None:
    with StrictServer(ScriptedModel(then="fine")) as provider:
        with proxied(provider, context_limit=LIMIT, recall=False) as proxy:
            Agent("anthropic", proxy.url, stream=False).work()
        last = provider.requests[-1]
        assert tools_of(last) == ["read"]
        assert "[ctxgc" in last.raw.decode()
        assert HANDLE.search(last.raw.decode()) is None


def test_a_model_that_recalls_for_ever_ends_its_turn() -> None:
    model = ScriptedModel(then="fine")
    with StrictServer(model) as provider, proxied(provider, context_limit=LIMIT) as proxy:
        agent = Agent("anthropic", proxy.url, stream=True)
        agent.work()
        model.extend([recall] * 12)
        assert agent.ask()["stop_reason"] == "end_turn"
        agent.history.pop()
        agent.say("and now?")
        assert text_of(agent.ask()) == "fine"
        assert provider.refusals == []


@pytest.mark.parametrize("stream", [False, True])
def test_a_provider_that_does_not_go_on_is_an_error_in_its_own_shape(stream: bool) -> None:
    model = ScriptedModel(then="fine")
    with StrictServer(model) as provider, proxied(provider, context_limit=LIMIT) as proxy:
        agent = Agent("anthropic", proxy.url, stream=stream)
        agent.work()

        def fail_after(request: RecordedRequest) -> ToolCall:
            provider.fail_next(529)
            return recall(request)

        model.extend([fail_after])
        with pytest.raises(Exception, match="the provider did not go on after a recall"):
            agent.ask()
        assert text_of(agent.ask()) == "fine"
