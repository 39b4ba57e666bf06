"""Summarizers over the official SDKs of Anthropic and OpenAI; the latter for any server with its protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ctxgc.summarizers.base import INSTRUCTIONS, fenced, require_package

if TYPE_CHECKING:
    from anthropic import Anthropic
    from openai import OpenAI


class AnthropicSummarizer:
    """Summarises with a Claude model, which gets no tools, and the text only as data.

    Without a client it creates `anthropic.Anthropic()` on first use, which takes its key from the
    environment.

    Raises:
        SummarizerError: no client was given and the `anthropic` package is not installed.
    """

    def __init__(
        self,
        model: str,
        client: Anthropic | None = None,
        *,
        max_tokens: int = 1024,
        timeout: float = 30.0,
    ) -> None:
        if client is None:
            require_package("anthropic")
        self._model = model
        self._client: Any = client
        self._options: dict[str, Any] = {"max_tokens": max_tokens, "timeout": timeout}

    def __call__(self, conversation: str) -> str:
        """Return the model's summary; empty if it gave none."""
        if self._client is None:
            from anthropic import Anthropic  # noqa: PLC0415 (an extra, only needed here)

            self._client = Anthropic()
        answer = self._client.messages.create(
            model=self._model,
            system=INSTRUCTIONS,
            messages=[{"role": "user", "content": fenced(conversation)}],
            **self._options,
        )
        return "".join(block.text for block in answer.content if block.type == "text")

    def __repr__(self) -> str:
        return f"AnthropicSummarizer({self._model!r})"


class OpenAISummarizer:
    """Summarises with a chat model, which gets no tools, and the text only as data.

    Without a client it creates `openai.OpenAI()` on first use, which takes key and address from the
    environment. Older servers need `limit_parameter="max_tokens"`.

    Raises:
        SummarizerError: no client was given and the `openai` package is not installed.
    """

    def __init__(
        self,
        model: str,
        client: OpenAI | None = None,
        *,
        max_tokens: int = 1024,
        timeout: float = 30.0,
        limit_parameter: str = "max_completion_tokens",
    ) -> None:
        if client is None:
            require_package("openai")
        self._model = model
        self._client: Any = client
        self._options: dict[str, Any] = {limit_parameter: max_tokens, "timeout": timeout}

    def __call__(self, conversation: str) -> str:
        """Return the model's summary; empty if it gave none."""
        if self._client is None:
            from openai import OpenAI  # noqa: PLC0415 (an extra, only needed here)

            self._client = OpenAI()
        answer = self._client.chat.completions.create(
            model=self._model,
            messages=[
                {"role": "system", "content": INSTRUCTIONS},
                {"role": "user", "content": fenced(conversation)},
            ],
            **self._options,
        )
        return (answer.choices[0].message.content or "") if answer.choices else ""

    def __repr__(self) -> str:
        return f"OpenAISummarizer({self._model!r})"
