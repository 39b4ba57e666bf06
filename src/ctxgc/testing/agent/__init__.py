"""A scripted coding agent that writes realistic histories, the same for the same seed."""

from ctxgc.testing.agent.session import AgentSession, make_session
from ctxgc.testing.agent.steps import Call, Fact, Step

__all__ = ["AgentSession", "Call", "Fact", "Step", "make_session"]
