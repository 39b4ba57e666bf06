"""The frameworks that have an adapter: the package, the version that was tested, and where the adapter is."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import msgspec


class Framework(msgspec.Struct, frozen=True, kw_only=True):
    """One framework with the version that the tests ran with."""

    name: str
    package: str
    tested: str
    adapter: str
    hook: str
    also: tuple[str, ...] = ()
    """What else the tests need, as requirements."""
    python: tuple[int, int] = (3, 11)

    def installed(self) -> str | None:
        """Return the version that is installed here; None if there is none."""
        try:
            return version(self.package)
        except PackageNotFoundError:
            return None


FRAMEWORKS: tuple[Framework, ...] = (
    Framework(
        name="anthropic", package="anthropic", tested="2.8.0", adapter="ctxgc.adapters.anthropic",
        hook="`Middleware`",
    ),
    Framework(
        name="openai", package="openai", tested="3.49.0", adapter="ctxgc.adapters.openai",
        hook="transport, `ContextBudget`",
    ),
    Framework(
        name="langchain", package="langchain", tested="1.4.7", adapter="ctxgc.adapters.langchain",
        hook="`AgentMiddleware`, `ContextEdit`",
        also=("langchain-openai==1.7.3", "deepagents==0.7.32", "langgraph-checkpoint-sqlite==3.1.2"),
    ),
    Framework(
        name="openai-agents", package="openai-agents", tested="0.24.0",
        adapter="ctxgc.adapters.openai_agents", hook="`Session`, `call_model_input_filter`",
    ),
    Framework(
        name="pydantic-ai", package="pydantic-ai-slim", tested="2.66.0",
        adapter="ctxgc.adapters.pydantic_ai", hook="capability, `ProcessHistory`",
        also=("pydantic-ai-slim[openai]==2.66.0",),
    ),
    Framework(
        name="litellm", package="litellm", tested="1.106.2", adapter="ctxgc.adapters.litellm",
        hook="callback, guardrail", also=("mcp==2.3.0",),
    ),
    Framework(
        name="strands", package="strands-agents", tested="1.62.0", adapter="ctxgc.adapters.strands",
        hook="`ConversationManager`", also=("strands-agents[openai]==1.62.0",),
    ),
    Framework(
        name="haystack", package="haystack-ai", tested="3.4.0", adapter="ctxgc.adapters.haystack",
        hook="`Compactor`",
    ),
    Framework(
        name="agent-framework", package="agent-framework-core", tested="1.23.0",
        adapter="ctxgc.adapters.agent_framework", hook="`ChatMiddleware`, `CompactionStrategy`",
        also=("agent-framework-openai==1.17.0",),
    ),
    Framework(
        name="google-adk", package="google-adk", tested="2.13.0",
        adapter="ctxgc.adapters.google_adk", hook="`BasePlugin`",
        also=("litellm==1.106.2", "mcp==2.3.0"),
    ),
    Framework(
        name="ag2", package="ag2", tested="1.2.1", adapter="ctxgc.adapters.ag2",
        hook="`BaseMiddleware`, `CompactStrategy`", also=("ag2[openai]==1.2.1",),
    ),
    Framework(
        name="openhands", package="openhands-sdk", tested="1.57.0",
        adapter="ctxgc.adapters.openhands", hook="`CondenserBase`", python=(3, 12),
    ),
)  # fmt: skip
