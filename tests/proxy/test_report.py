"""With `--report original` the client's gauge shows its request as if nothing had left."""

from __future__ import annotations

from typing import Any

import pytest

from ctxgc.testing import ScriptedModel, StrictServer
from tests.proxy.places import proxied
from tests.proxy.test_recall_loop import FORMS, LIMIT, STEPS, Agent


def told(form: str, body: dict[str, Any]) -> int:
    usage = body["usage"]
    if form != "anthropic":
        return int(usage["prompt_tokens" if form == "openai" else "input_tokens"])
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return sum(usage[name] for name in names)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_the_gauge_shows_what_was_sent_or_what_would_have_been(form: str, stream: bool) -> None:
    shown, sent = {}, {}
    for report in ("forwarded", "original"):
        with StrictServer(ScriptedModel(then="fine")) as provider:
            with proxied(provider, context_limit=LIMIT, report=report) as proxy:
                agent = Agent(form, proxy.url, stream=stream)
                agent.work()
                shown[report] = told(form, agent.ask())
            sent[report] = provider.requests[-1].tokens
    with StrictServer(ScriptedModel(then="fine"), context_limit=None) as direct:
        agent = Agent(form, direct.base_url, stream=stream)
        agent.work(STEPS)
        whole = told(form, agent.ask())
    assert shown["forwarded"] == sent["forwarded"]
    assert sent["original"] < whole / 2
    assert abs(shown["original"] - whole) < whole / 10
