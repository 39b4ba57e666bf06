"""What the client needs from a provider, and how it opens one."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from inspect import iscoroutinefunction
from typing import Any, ClassVar, Literal, Protocol, Self, get_args

import msgspec

from ctxgc.client.answer import Answer
from ctxgc.client.tools import Tool, ToolOutcome
from ctxgc.config import unknown_key
from ctxgc.core import Format
from ctxgc.errors import ClientError, InputError

ProviderName = Literal["openai", "responses", "anthropic"]
OnText = Callable[[str], object]

_HOMES: dict[str, tuple[str, str, str]] = {
    "openai": ("openai", "OpenAI", "ctxgc.client.openai_chat:OpenAIChat"),
    "responses": ("openai", "OpenAI", "ctxgc.client.openai_responses:OpenAIResponses"),
    "anthropic": ("anthropic", "Anthropic", "ctxgc.client.anthropic_messages:AnthropicMessages"),
}
_OURS = ("model", "messages", "input", "system", "instructions", "tools", "stream")


class Provider(Protocol):
    """One model behind one protocol."""

    format: ClassVar[Format]

    @property
    def model(self) -> str:
        """The model's name."""
        ...

    def with_model(self, model: str) -> Provider:
        """Return the same provider with another model."""
        ...

    def user(self, text: str) -> dict[str, Any]:
        """Return a user message."""
        ...

    def results(self, outcomes: Sequence[ToolOutcome]) -> list[dict[str, Any]]:
        """Return the messages that answer tool calls."""
        ...

    def schema(self, tool: Tool) -> dict[str, Any]:
        """Return a tool as the protocol describes it."""
        ...

    def send(
        self,
        messages: list[dict[str, Any]],
        *,
        system: str | None,
        tools: Sequence[dict[str, Any]],
        on_text: OnText | None,
    ) -> Answer:
        """Ask the model; with `on_text` the answer is streamed to it piece by piece."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """What the three providers share: an SDK client, a model, options for each request."""

    sdk: Any
    model: str
    max_output_tokens: int | None = None
    options: Mapping[str, Any] = {}

    def with_model(self, model: str) -> Self:
        """Return the same endpoint with another model."""
        return msgspec.structs.replace(self, model=model)

    def close(self) -> None:
        """Close the connections."""
        self.sdk.close()

    def given(self, **fields: Any) -> dict[str, Any]:
        """Return the fields of a request: the caller's options win, and None is left out."""
        merged = {**fields, **self.options}
        return {name: value for name, value in merged.items() if value not in (None, [])}


def open_provider(
    name: str | None,
    *,
    model: str | None,
    sdk: Any = None,
    sdk_options: Mapping[str, Any] | None = None,
    max_output_tokens: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> Provider:
    """Return the named provider; without a name, the one that the model's name suggests.

    Raises:
        InputError: no model is given, the options contain what the client itself sets, or the SDK
            client is one for event loops.
        ConfigError: the provider is unknown.
        ClientError: its package is not installed.
    """
    if not model:
        raise InputError("no model is given", hint="connect(model=...)", field="model")
    chosen = name or ("anthropic" if "claude" in model.lower() else "openai")
    if chosen not in _HOMES:
        raise unknown_key(chosen, get_args(ProviderName), "provider")
    _check_options(options or {})
    _check_sdk(sdk)
    package, client, home = _HOMES[chosen]
    module, _, kind = home.partition(":")
    made: Provider = getattr(importlib.import_module(module), kind)(
        sdk=sdk if sdk is not None else _make_sdk(package, client, sdk_options or {}),
        model=model,
        max_output_tokens=max_output_tokens,
        options=dict(options or {}),
    )
    return made


def _check_options(options: Mapping[str, Any]) -> None:
    for name in options:
        if name in _OURS:
            raise InputError(
                f'options: "{name}" is set by the client itself',
                hint="connect() and send_message() have arguments for it",
                field="options",
            )


def _check_sdk(sdk: Any) -> None:
    if iscoroutinefunction(getattr(sdk, "close", None)):
        kind = type(sdk).__name__
        raise InputError(
            f"sdk cannot be an {kind}",
            hint=f"pass {kind.removeprefix('Async')}(...): AsyncChatClient calls it in a thread",
            field="sdk",
        )


def _make_sdk(package: str, client: str, options: Mapping[str, Any]) -> Any:
    try:
        module = importlib.import_module(package)
    except ImportError as error:
        raise ClientError(
            f'the package "{package}" is not installed',
            hint=f"pip install 'ctxgc[{package}]'",
            package=package,
        ) from error
    given = {name: value for name, value in options.items() if value is not None}
    try:
        return getattr(module, client)(**given)
    except TypeError as error:
        raise InputError(
            f"the {package} SDK: {str(error).rpartition('() ')[2]}",
            hint="check project and sdk_options",
            field="sdk_options",
        ) from error
