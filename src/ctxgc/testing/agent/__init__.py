"""A scripted coding agent that writes realistic histories, the same for the same seed."""

from __future__ import annotations

from ctxgc.testing.agent.project import AgentCall, AgentStep, Fact
from ctxgc.testing.agent.session import AgentSession, make_session

__all__ = ["AgentCall", "AgentSession", "AgentStep", "Fact", "make_session"]
