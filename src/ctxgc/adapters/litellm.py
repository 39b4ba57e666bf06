"""LiteLLM: one object that is a callback of the SDK and a guardrail of the proxy.

litellm.callbacks = [CtxgcGuardrail(context_limit=200_000)]
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from litellm.integrations.custom_guardrail import CustomGuardrail

from ctxgc.adapters.request_body import RequestBodies
from ctxgc.adapters.session_pool import SessionPool

_ROUTE = "/chat/completions"


class CtxgcGuardrail(CustomGuardrail):
    """Sends the view in place of the messages of each asynchronous call.

    LiteLLM calls it for `acompletion` and for requests of its proxy; the synchronous `completion` has no hook
    that may change messages.

    Args:
        session_id: the conversation; without one, conversations are told apart by their first message.
        options: anything that `Session` takes, such as `context_limit`, `store` or `config`.
    """

    def __init__(self, *, session_id: str | None = None, **options: Any) -> None:
        super().__init__(guardrail_name="ctxgc", default_on=True)
        self._bodies = RequestBodies(session_id, options)

    @property
    def sessions(self) -> SessionPool:
        """The sessions of the conversations, to pin, search and look at."""
        return self._bodies.sessions

    def tools(self) -> list[dict[str, Any]]:
        """Return the recall tools as `acompletion(tools=...)` takes them."""
        return [tool.schema("openai") for tool in self.sessions.recall_tools()]

    def answer(self, call: object) -> dict[str, Any] | None:
        """Return the message that replies to a call of `tools()`; None for another tool's call."""
        return self.sessions.session().answer(call)

    async def async_pre_call_deployment_hook(
        self,
        kwargs: dict[str, Any],
        call_type: Any,  # noqa: ARG002 - of the framework
    ) -> dict[str, Any]:
        """Return the arguments of a call of the SDK, with the view."""
        return await asyncio.to_thread(self._fitted, kwargs)

    async def async_pre_call_hook(
        self,
        user_api_key_dict: Any,  # noqa: ARG002 - of the framework
        cache: Any,  # noqa: ARG002
        data: dict[str, Any],
        call_type: Any,  # noqa: ARG002
    ) -> dict[str, Any]:
        """Return the body of a request of the proxy, with the view."""
        return await asyncio.to_thread(self._fitted, data)

    def _fitted(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        fitted = self._bodies.fit(_ROUTE, fields)
        return dict(fields) if fitted is None else fitted.rendered()
