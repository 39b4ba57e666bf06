"""The strict provider without the network: from the bytes of a request to an answer or a refusal."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ctxgc.testing import checker_anthropic, checker_openai, checker_responses
from ctxgc.testing.breach import Breach, Format, Json
from ctxgc.testing.checker_responses import IssuedItems
from ctxgc.testing.model import RecordedRequest, Refusal, ScriptedModel, Turn
from ctxgc.testing.serve import answer_anthropic, answer_openai, answer_responses
from ctxgc.testing.serve.cache import CacheUnit, CacheUse, Count, PrefixCache, units_of
from ctxgc.testing.serve.refusals import (
    SECRET_HEADERS,
    RefusedError,
    check_key,
    check_request,
    error_body,
    from_fault,
    read_body,
    too_long,
)
from ctxgc.testing.serve.reply import ServerIds, ServerReply, reply_to
from ctxgc.testing.serve.settings import Fault, Settings
from ctxgc.testing.signatures import ThinkingSignatures, drops_blocks

_CALL_STARTS: dict[Format, str] = {"openai": "call_", "responses": "call_", "anthropic": "toolu_"}


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """The answer: a body, and the events if it is streamed."""

    status: int
    body: Json
    events: tuple[bytes, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)


class StrictProvider:
    """Refuses requests as the provider would, and lets the model answer the others."""

    def __init__(self, model: ScriptedModel, settings: Settings, count: Count) -> None:
        self.model = model
        self.settings = settings
        self.count: Count = functools.lru_cache(maxsize=1 << 16)(count)
        self.cache = PrefixCache(settings.min_cache_tokens)
        self.refusals: list[Refusal] = []
        self.script_errors: list[Exception] = []
        self._ids = ServerIds()
        self._items = IssuedItems()
        self._signatures = ThinkingSignatures(
            bind=settings.bind_thinking, accept_foreign=settings.accept_foreign_thinking
        )

    def handle(
        self, form: Format, path: str, raw: bytes, headers: Mapping[str, str], fault: Fault | None
    ) -> ServerAnswer:
        """Return the answer to one request, valid or not."""
        seen = RecordedRequest(form, path, {}, raw, _public(headers))
        try:
            if fault is not None and fault.status is not None:
                raise from_fault(fault)
            if self.settings.require_key:
                check_key(form, headers)
            body = read_body(form, raw, self.settings)
            seen = RecordedRequest(form, path, body, raw, seen.headers)
            check_request(form, body, headers, self.settings, path)
            return self._serve(seen, self._conversation(form, body))
        except RefusedError as refused:
            self.refusals.append(Refusal(seen, refused.breaches or (refused.breach,)))
            body = error_body(form, refused.breach)
            return ServerAnswer(refused.breach.status, body, headers=refused.headers)

    def _conversation(self, form: Format, body: dict[str, Any]) -> dict[str, Any]:
        """Return the body with the stored items that it refers to."""
        if form != "responses":
            return body
        sent = body.get("input") or []
        items = [{"role": "user", "content": sent}] if isinstance(sent, str) else sent
        previous = body.get("previous_response_id")
        known = self._items.history(previous) if previous is not None else []
        if known is None:
            text = f"Previous response with id '{previous}' not found."
            code = "previous_response_not_found"
            raise RefusedError(Breach("unknown_item", text, "previous_response_id", code))
        return {**body, "input": [*known, *(self._resolved(item) for item in items)]}

    def _resolved(self, item: Any) -> Any:
        if isinstance(item, Mapping) and item.get("type") == "item_reference":
            return self._items.stored(item.get("id")) or item
        return item

    def _serve(self, seen: RecordedRequest, body: dict[str, Any]) -> ServerAnswer:
        form = seen.format
        if self.settings.validate:
            self._check_history(form, body)
        units = units_of(body, form, self.count)
        tokens = sum(unit.tokens for unit in units)
        seen = RecordedRequest(form, seen.path, seen.body, seen.raw, seen.headers, tokens)
        if seen.path.endswith("/count_tokens"):
            return ServerAnswer(200, {"input_tokens": tokens})
        self._check_length(form, body, tokens)
        turn = self._turn(seen)
        use = self._cache_use(form, body, units)
        reply = reply_to(turn, use, self._ids, _CALL_STARTS[form], self.count)
        return self._answer(form, body, reply)

    def _check_history(self, form: Format, body: dict[str, Any]) -> None:
        if form == "openai":
            breaches = checker_openai.check(body)
        elif form == "responses":
            breaches = checker_responses.check(body, issued=self._items)
        else:
            breaches = checker_anthropic.check(body, signatures=self._signatures)
        if breaches:
            raise RefusedError(breaches[0], tuple(breaches))

    def _check_length(self, form: Format, body: Json, tokens: int) -> None:
        limit = self.settings.context_limit
        if limit is None:
            return
        asked = body.get("max_completion_tokens") or body.get("max_tokens") or 0
        breach = too_long(form, tokens, asked if self.settings.count_output else 0, limit)
        if breach is not None:
            raise RefusedError(breach)

    def _turn(self, request: RecordedRequest) -> Turn:
        try:
            return self.model.answer(request)
        except Exception as error:
            self.script_errors.append(error)
            text = f"the scripted model failed: {error}"
            breach = Breach("script", text, status=500)
            raise RefusedError(breach, headers={"x-should-retry": "false"}) from error

    def _cache_use(self, form: Format, body: Json, units: list[CacheUnit]) -> CacheUse:
        key = (form, body["model"], body.get("prompt_cache_key"))
        account = self.cache.anthropic if form == "anthropic" else self.cache.openai
        return account(key, units)

    def _answer(self, form: Format, body: dict[str, Any], reply: ServerReply) -> ServerAnswer:
        events: Iterable[bytes]
        if form == "openai":
            answer = answer_openai.completion(reply, body, self._ids)
            events = answer_openai.stream(answer, body)
        elif form == "responses":
            answer = answer_responses.response(reply, body, self._ids)
            stored = body.get("store") is not False
            self._items.remember(answer["id"], body["input"], answer["output"], stored=stored)
            events = answer_responses.stream(answer)
        else:
            dropped = self._signatures.dropped(body) if drops_blocks(body) else ()
            answer = answer_anthropic.message(reply, body, self._ids, self._signatures, dropped)
            events = answer_anthropic.stream(answer)
        return ServerAnswer(200, answer, tuple(events) if body.get("stream") else ())


def _public(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name not in SECRET_HEADERS}
