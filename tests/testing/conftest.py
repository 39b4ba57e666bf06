"""Clients of the official SDKs for a strict server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from ctxgc.testing import ScriptedModel, StrictServer

if TYPE_CHECKING:
    import anthropic
    import openai

PATIENCE = 60.0


@pytest.fixture
def model() -> ScriptedModel:
    """A model without a script; tests extend it."""
    return ScriptedModel()


@pytest.fixture
def server(model: ScriptedModel) -> Iterator[StrictServer]:
    with StrictServer(model, min_cache_tokens=64) as running:
        yield running


@pytest.fixture
def chat(server: StrictServer) -> Iterator[openai.OpenAI]:
    import openai  # noqa: PLC0415 (a second, which the process that hands out the tests can do without)

    with openai.OpenAI(
        base_url=server.openai_base_url, api_key="any", max_retries=0, timeout=PATIENCE
    ) as client:
        yield client


@pytest.fixture
def claude(server: StrictServer) -> Iterator[anthropic.Anthropic]:
    import anthropic  # noqa: PLC0415

    with anthropic.Anthropic(
        base_url=server.base_url, api_key="any", max_retries=0, timeout=PATIENCE
    ) as client:
        yield client
