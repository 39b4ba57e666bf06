"""Test helpers for programs that talk to language models, and the judge of ctxgc's own views.

`check_history` lists what a provider would refuse in a history (`checker_*`, `signatures`).
`StrictServer` imitates a provider on loopback with a `ScriptedModel` (`server`, `model`, `serve`): it
streams, reports usage with cache fields, and refuses invalid or over-long requests with the provider's
own errors. `make_session` writes realistic histories of a scripted coding agent (`agent`); the lab's
corpus and the demo are made by the same agent.

    from ctxgc.testing import StrictServer, ToolCall

    with StrictServer([ToolCall("read", {"path": "a.py"}), "done"], context_limit=8_000) as server:
        client = openai.OpenAI(base_url=server.openai_base_url, api_key="any")

Nothing here shares code with what it judges. Only a running server needs the extra `ctxgc[serve]`.
"""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.testing.agent.project import Chance, Project
    from ctxgc.testing.agent.render import AnthropicRendering, ChatRendering
    from ctxgc.testing.agent.session import AgentSession, Fact, make_session, seeded_project
    from ctxgc.testing.agent.stories import Script
    from ctxgc.testing.agent.tools import AgentCall, AgentStep, instructions
    from ctxgc.testing.breach import Breach
    from ctxgc.testing.check import check_history
    from ctxgc.testing.checker_responses import IssuedItems
    from ctxgc.testing.model import RecordedRequest, Refusal, ScriptedModel, ToolCall, Turn
    from ctxgc.testing.serve.settings import Settings
    from ctxgc.testing.server import StrictServer
    from ctxgc.testing.signatures import ThinkingSignatures
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "agent.project": "Chance Project",
            "agent.render": "AnthropicRendering ChatRendering",
            "agent.session": "AgentSession Fact make_session seeded_project",
            "agent.stories": "Script",
            "agent.tools": "AgentCall AgentStep instructions",
            "breach": "Breach",
            "check": "check_history",
            "checker_responses": "IssuedItems",
            "model": "RecordedRequest Refusal ScriptedModel ToolCall Turn",
            "serve.settings": "Settings",
            "server": "StrictServer",
            "signatures": "ThinkingSignatures",
        },
    )
