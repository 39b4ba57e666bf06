"""ChatClient: a model, a session and tools behind one interface (S3, programmatic configuration).

client = ChatClient()
client.connect(model="gpt-4o", context_limit=128_000)
print(client.send_message("Hello"))
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Self

import msgspec

from ctxgc.budget import GCPolicy
from ctxgc.client.answer import Reply
from ctxgc.client.conversation import Cancellation, Conversation, OnThreshold
from ctxgc.client.provider import OnText, Provider, open_provider
from ctxgc.client.tools import RECALL_NAMES, Tool, Toolbox, make_tool
from ctxgc.collector import GCResult
from ctxgc.config import GCConfig, Profile, load_profile, unknown_key
from ctxgc.errors import ClientError, InputError
from ctxgc.session import Session
from ctxgc.strategies import GCPlugin, gc_from_inline, gc_from_spec

AnyTool = Tool | Callable[..., Any] | Mapping[str, Any]
MOST_DEPTH = 3

_SESSION_OPTIONS = tuple(
    name for name in inspect.signature(Session).parameters if name not in ("model", "recall_call")
)


class SubagentResult(Reply):
    """The final text of a subagent, with its session id, collections and profile."""

    session_id: str
    profile: str | None
    depth: int
    gc_history: list[GCResult]


class ChatClient:
    """Talks to a model over its official SDK and keeps the context under garbage collection.

    Use it from one thread at a time. A provider's own errors are raised as the SDK raises them; nothing
    said is lost by them, and the same message sent again counts once.
    """

    def __init__(self) -> None:
        self._talk: Conversation | None = None
        self._setup: ClientSetup
        self._cancellation: Cancellation | None = None

    def connect(
        self,
        /,
        project: str | None = None,
        location: str | None = None,
        model: str | None = None,
        *,
        provider: str | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        sdk: Any = None,
        sdk_options: Mapping[str, Any] | None = None,
        system: str | None = None,
        tools: Iterable[AnyTool] = (),
        max_output_tokens: int | None = None,
        options: Mapping[str, Any] | None = None,
        recall: bool = True,
        max_rounds: int = 25,
        tool_workers: int = 1,
        **session: Any,
    ) -> None:
        """Choose a model and open a session for it; a session that is open is closed first.

        Args:
            project: OpenAI's project id; not used by other providers.
            location: the address of the provider; S3's word for `base_url`.
            model: the model's name.
            provider: `openai` (chat completions), `responses` or `anthropic`; else by the model's name.
            base_url: the address of the provider; else the SDK's own.
            api_key: the key; else the SDK takes it from the environment.
            sdk: an SDK client of your own, for example for a cloud.
            sdk_options: more arguments for the SDK's client, such as `timeout` or `max_retries`.
            system: instructions that come before the conversation.
            tools: functions, or `{"schema": ..., "callable": ...}`, with a `policy` if they may leave.
            max_output_tokens: the longest answer; Anthropic needs one and gets 4096.
            options: more fields for every request, such as `temperature` or `thinking`.
            recall: whether the model is offered tools to get back what was moved out.
            max_rounds: the most requests for one message.
            tool_workers: how many calls of one answer run at the same time, in threads.
            session: anything that `Session` takes: `context_limit`, `config`, `plugin`, `store`,
                `prices`, `session_id`, `counter`, `clock`.
        """
        address = _address(location, base_url)
        given = {"api_key": api_key, "base_url": address, "project": project}
        found = open_provider(
            provider,
            model=model,
            sdk=sdk,
            sdk_options={**given, **(sdk_options or {})},
            max_output_tokens=max_output_tokens,
            options=options,
        )
        setup = ClientSetup(
            provider=found,
            tools=tuple(self._make_tool(tool) for tool in tools),
            session=session,
            system=system,
            recall=recall,
            max_rounds=max_rounds,
            tool_workers=tool_workers,
            owns_sdk=sdk is None,
        )
        self.close()
        self._open(setup)

    def set_gc_plugin(self, plugin: str | GCPlugin, config: GCConfig | None = None) -> None:
        """Use another strategy, and another configuration if one is given."""
        self.session.set_gc_plugin(plugin, config)

    def add_tool(
        self,
        tool: AnyTool,
        *,
        name: str | None = None,
        description: str | None = None,
        schema: Mapping[str, Any] | None = None,
        policy: GCPolicy = GCPolicy.LOCKED,
    ) -> None:
        """Offer the model one more tool: a function, or `{"schema": ..., "callable": ...}`.

        Without a schema it is read from the function's annotations, the description from its docstring.
        With the policy CONDITIONAL or EPHEMERAL a collection may leave the schema out of the requests until
        a message names the tool.
        """
        made = self._make_tool(
            tool, name=name, description=description, schema=schema, policy=policy
        )
        self._connected().add_tool(made)

    def send_message(
        self,
        text: str,
        *,
        on_gc_threshold: OnThreshold | None = None,
        on_text: OnText | None = None,
    ) -> Reply:
        """Send a message to the model, run the tools it calls, and return its final text.

        Args:
            text: what the user says.
            on_gc_threshold: called once, with the percentage in use and the threshold, when the
                context reaches the threshold, before anything is collected.
            on_text: called with each piece of text as the model writes it.

        Raises:
            ContextOverflowError: what must stay does not fit the model's window.
            ClientError: the client is not connected, or the model does not stop calling tools.
        """
        talk = self._connected()
        talk.say(text)
        return talk.run(on_text, on_gc_threshold, self._cancellation)

    def resume(
        self, *, on_gc_threshold: OnThreshold | None = None, on_text: OnText | None = None
    ) -> Reply:
        """Ask the model again without a new message: after an error, or when the rounds were used up."""
        talk = self._connected()
        if not talk.session.history:
            raise ClientError("there is nothing to resume", hint="start with send_message()")
        return talk.run(on_text, on_gc_threshold, self._cancellation)

    def spawn_subagent(
        self,
        task: str,
        profile: str | None = None,
        inline_config: Mapping[str, Any] | None = None,
    ) -> SubagentResult:
        """Give a task to a subagent with its own session and return its final text.

        Its collector comes from `inline_config["gc"]`, else from the profile in `.ctxgc/profiles/`
        or `.jaato/profiles/`; model, instructions and tools are the profile's, else this client's.

        Raises:
            ConfigError: the profile or the inline configuration is wrong.
            ClientError: subagents are nested too deep.
        """
        talk, setup = self._connected(), self._setup
        _check_depth(setup.depth)
        chosen = load_profile(profile) if profile is not None else None
        own = tuple(tool for tool in talk.toolbox if tool.name not in RECALL_NAMES)
        now = _subagent_setup(msgspec.structs.replace(setup, tools=own), chosen, inline_config)
        with ChatClient() as child:
            child._cancellation = self._cancellation
            child._open(_rebind_tools(now, self, child))
            reply = child.send_message(task)
            return SubagentResult(
                reply,
                **vars(reply),
                session_id=child.session.session_id,
                profile=chosen.name if chosen is not None else None,
                depth=now.depth,
                gc_history=child.get_gc_history(),
            )

    def manual_gc(self) -> GCResult:
        """Collect now."""
        return self.session.manual_gc()

    def get_gc_history(self) -> list[GCResult]:
        """Return the results of all collections, oldest first."""
        return self.session.gc_history

    @property
    def session(self) -> Session:
        """The session of the conversation."""
        return self._connected().session

    def close(self) -> None:
        """Close the session; a store or SDK client that was passed in as an object stays open."""
        talk, self._talk = self._talk, None
        if talk is not None:
            self._setup.close(talk.session)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _connected(self) -> Conversation:
        if self._talk is None:
            raise ClientError("the client is not connected", hint="call connect(model=...) first")
        return self._talk

    def _make_tool(self, tool: AnyTool, **given: Any) -> Tool:
        return make_tool(tool, **given)

    def _open(self, setup: ClientSetup) -> None:
        self._talk = _open_conversation(setup)
        self._setup = setup


def _address(location: str | None, base_url: str | None) -> str | None:
    if location is not None and base_url is not None:
        raise InputError(
            "location and base_url both name an address", hint="pass one of them", field="location"
        )
    return base_url if location is None else location


# -- Set-up: all that a conversation needs, so that a subagent can inherit it


class ClientSetup(msgspec.Struct, frozen=True, kw_only=True):
    """A model, its tools and instructions, and the options of its session."""

    provider: Provider
    tools: tuple[Tool, ...]
    session: Mapping[str, Any]
    system: str | None
    recall: bool
    max_rounds: int
    tool_workers: int
    owns_sdk: bool = True
    depth: int = 0

    def __post_init__(self) -> None:
        for name in ("max_rounds", "tool_workers"):
            if getattr(self, name) < 1:
                value = getattr(self, name)
                raise InputError(
                    f"{name} must be at least 1, got {value}", hint="pass 1 or more", field=name
                )
        for name in self.session:
            if name not in _SESSION_OPTIONS:
                raise unknown_key(name, _SESSION_OPTIONS, "option of a session")

    @property
    def owns_store(self) -> bool:
        """Whether the session opens its store itself, and so has to close it."""
        return isinstance(self.session.get("store"), str | None)

    def close(self, session: Session) -> None:
        """Close what was opened; a store or SDK client that was passed in stays open."""
        if self.owns_store:
            session.close()
        else:
            session.flush()
        if self.owns_sdk:
            self.provider.close()


def _open_conversation(setup: ClientSetup) -> Conversation:
    """Return a conversation with a session of its own, new or continued."""
    toolbox = Toolbox(setup.tools, workers=setup.tool_workers)
    without_recall = {} if setup.recall else {"recall_call": ""}
    session = Session(model=setup.provider.model, **{**setup.session, **without_recall})
    try:
        return Conversation(
            session,
            setup.provider,
            toolbox,
            system=setup.system,
            max_rounds=setup.max_rounds,
            recall=setup.recall,
        )
    except InputError:
        setup.close(session)
        raise


# -- Subagents: another model or profile with a session of its own


def _check_depth(depth: int) -> None:
    """Raise ClientError if a client at this depth may not start another one."""
    if depth >= MOST_DEPTH:
        raise ClientError(
            f"a subagent at depth {depth} cannot start another one",
            hint="let it do the task itself",
            depth=depth,
        )


def _subagent_setup(
    parent: ClientSetup, profile: Profile | None, inline_config: Mapping[str, Any] | None
) -> ClientSetup:
    """Return the set-up of a subagent: the parent's, changed by the profile and the inline configuration.

    Raises:
        ConfigError: the inline configuration is wrong, or the profile names an unknown tool.
    """
    own: dict[str, Any] = {"session_id": None}
    gc = choose_gc(profile, inline_config)
    if gc is not None:
        own |= {"plugin": gc[0], "config": gc[1]}
    changes: dict[str, Any] = {
        "tools": _choose_tools(parent.tools, profile),
        "session": {**parent.session, **own},
        "owns_sdk": False,
        "depth": parent.depth + 1,
    }
    if profile is not None and profile.system_instructions is not None:
        changes["system"] = profile.system_instructions
    if profile is not None and profile.model is not None:
        changes["provider"] = parent.provider.with_model(profile.model)
    return msgspec.structs.replace(parent, **changes)


def _rebind_tools(setup: ClientSetup, parent: object, child: object) -> ClientSetup:
    """Return a set-up in which tools that are methods of the parent are the child's own.

    A subagent with the tool `spawn_subagent` then counts its own depth.
    """
    tools = [
        msgspec.structs.replace(tool, function=getattr(child, tool.function.__name__))
        if getattr(tool.function, "__self__", None) is parent
        else tool
        for tool in setup.tools
    ]
    return msgspec.structs.replace(setup, tools=tuple(tools))


def choose_gc(
    profile: Profile | None, inline_config: Mapping[str, Any] | None
) -> tuple[GCPlugin, GCConfig] | None:
    """Return the collector of the inline configuration, else of the profile; None if neither has one."""
    inline = gc_from_inline(inline_config) if inline_config is not None else None
    if inline is not None:
        return inline
    return gc_from_spec(profile.gc) if profile is not None and profile.gc is not None else None


def _choose_tools(tools: Iterable[Tool], profile: Profile | None) -> tuple[Tool, ...]:
    """Return the tools that a profile names in `plugins`; all of them if it names none.

    Raises:
        ConfigError: it names an unknown tool.
    """
    known = {tool.name: tool for tool in tools}
    if profile is None or not profile.plugins:
        return tuple(known.values())
    for name in profile.plugins:
        if name not in known:
            raise unknown_key(name, known, f'tool in the profile "{profile.name}"')
    return tuple(known[name] for name in profile.plugins)
