"""A call: what a tool may use of the request that it answers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp_types.version import is_version_at_least

from ctxgc.mcp.compressing import Draft
from ctxgc.mcp.service import ContextService

T = TypeVar("T")

ASKING_BY_RESULT = "2026-07-28"
"""From this revision on a server asks the client in its result instead of in a request of its own."""

PATIENCE = 120.0
QUESTION = "summary"


class ClientIsAskedError(Exception):
    """The client has to answer a question before the call can go on."""

    def __init__(self, question: types.InputRequiredResult) -> None:
        super().__init__("the client is asked")
        self.question = question


class Call:
    """One tool call of a client."""

    def __init__(
        self,
        service: ContextService,
        ctx: ServerRequestContext[Any, Any],
        params: types.CallToolRequestParams,
    ) -> None:
        self.service = service
        self._ctx = ctx
        self._params = params

    async def run(self, work: Callable[..., T], *args: Any, **named: Any) -> T:
        """Do work that blocks, off the loop; it is finished even if the call is cancelled meanwhile."""
        return await anyio.to_thread.run_sync(partial(work, *args, **named))

    async def progress(self, done: float, total: float, message: str) -> None:
        """Tell the client how far a long call is, if it wants to know."""
        await self._ctx.session.report_progress(done, total, message)

    async def sample(self, draft: Draft) -> str | None:
        """Return a summary by the client's own model; None if it offers none, or gives none.

        Raises:
            ClientIsAskedError: the client answers by calling again.
        """
        offered = self._ctx.session.client_capabilities
        if offered is None or offered.sampling is None:
            return None
        if is_version_at_least(self._ctx.protocol_version, ASKING_BY_RESULT):
            return self._answered(draft)
        return await self._asked(draft)

    def _answered(self, draft: Draft) -> str | None:
        state = _digest(draft)
        answers = self._params.input_responses or {}
        if self._params.request_state is None:
            request = types.CreateMessageRequest(params=_question(draft))
            raise ClientIsAskedError(
                types.InputRequiredResult(input_requests={QUESTION: request}, request_state=state)
            )
        # The text may have changed between the question and its answer.
        return _text(answers.get(QUESTION)) if self._params.request_state == state else None

    async def _asked(self, draft: Draft) -> str | None:
        if not self._ctx.session.can_send_request:
            return None
        params = _question(draft)
        with anyio.move_on_after(PATIENCE), warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            try:
                answer = await self._ctx.session.create_message(
                    params.messages,
                    max_tokens=params.max_tokens,
                    system_prompt=params.system_prompt,
                    related_request_id=self._ctx.request_id,
                )
            except (MCPError, ValueError):
                return None
            return _text(answer)
        return None


def _question(draft: Draft) -> types.CreateMessageRequestParams:
    content = types.TextContent(type="text", text=draft.request)
    return types.CreateMessageRequestParams(
        messages=[types.SamplingMessage(role="user", content=content)],
        max_tokens=draft.most_tokens,
        system_prompt=draft.instructions,
    )


def _text(answer: object) -> str | None:
    content = getattr(answer, "content", None)
    return content.text if isinstance(content, types.TextContent) else None


def _digest(draft: Draft) -> str:
    return blake2b(draft.text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
