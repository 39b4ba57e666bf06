"""Test helpers for programs that talk to language models, and the judge of ctxgc's own views.

`check_history` says what a provider would refuse in a history. `StrictServer` plays a provider on
loopback with a `ScriptedModel`: it streams, reports usage with cache fields, and refuses invalid or
over-long requests with the provider's own errors. `make_session` writes realistic agent histories.

    from ctxgc.testing import StrictServer, ToolCall

    with StrictServer([ToolCall("read", {"path": "a.py"}), "done"], context_limit=8_000) as server:
        client = openai.OpenAI(base_url=server.openai_base_url, api_key="any")

Nothing here shares code with the planner. Only a server that starts needs the extra `ctxgc[serve]`.
"""

from ctxgc.testing.agent import AgentSession, Fact, make_session
from ctxgc.testing.breach import Breach
from ctxgc.testing.check import check_history
from ctxgc.testing.item_book import ItemBook
from ctxgc.testing.model import RecordedRequest, Refusal, ScriptedModel, ToolCall, Turn
from ctxgc.testing.serve.settings import Settings
from ctxgc.testing.server import StrictServer
from ctxgc.testing.signatures import SignatureBook

__all__ = [
    "AgentSession",
    "Breach",
    "Fact",
    "ItemBook",
    "RecordedRequest",
    "Refusal",
    "ScriptedModel",
    "Settings",
    "SignatureBook",
    "StrictServer",
    "ToolCall",
    "Turn",
    "check_history",
    "make_session",
]
