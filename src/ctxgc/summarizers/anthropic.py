"""A summarizer over the Anthropic SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ctxgc.summarizers.base import INSTRUCTIONS, fenced, require_package

if TYPE_CHECKING:
    from anthropic import Anthropic


class AnthropicSummarizer:
    """Summarises with a Claude model. It gives the model no tools, and the text only as data.

    Without a client it makes `anthropic.Anthropic()`, which takes its key from the environment,
    when it is first called.

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
