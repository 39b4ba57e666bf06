"""What the lab expects of a policy, and the registry of policies by name."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any, Literal, Protocol, get_args

import msgspec

from ctxgc._version import __version__
from ctxgc.config import unknown_key
from ctxgc.core import Format
from ctxgc.economics import PriceSheet
from ctxgc.lab.runs import Run

RegimeKind = Literal["cost", "window"]
Kind = Literal["ours", "peer", "restated", "oracle", "base"]
_ALL = "all"


class PolicyTask(msgspec.Struct, frozen=True, kw_only=True):
    """The task of a policy: one run, a token limit and a price sheet.

    Only an oracle may look at messages of `run` that are still to come.
    """

    limit: int
    regime: RegimeKind
    sheet: PriceSheet
    run: Run
    format: Format = "openai"


class Player(Protocol):
    """A policy at work on one run."""

    def view(self, history: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the messages to send, given all so far; called once before each request."""
        ...

    def is_recallable(self, index: int) -> bool:
        """Return whether the view shows a live handle for the original message number `index`."""
        ...

    def counts(self) -> dict[str, float]:
        """Return what the policy reports about its own work.

        The lab compares `collections` with the prefix breaks that it saw, and `reported_bill` and
        `reported_unpruned_bill` with the bills that it replayed; other keys are passed on.
        """
        ...


class Policy(Protocol):
    """A way to prune, with what a reader of the table should know about it."""

    @property
    def name(self) -> str:
        """The name in the registry and in the table."""
        ...

    @property
    def kind(self) -> Kind:
        """Ours, a peer's package, a published rule restated, an oracle, or the baseline."""
        ...

    @property
    def version(self) -> str:
        """The version of the package that prunes."""
        ...

    @property
    def settings(self) -> dict[str, Any]:
        """Its settings, ready for JSON."""
        ...

    def open(self, task: PolicyTask) -> Player:
        """Begin a run."""
        ...


POLICIES: dict[str, str] = {
    "never": "ctxgc.lab.policies:never",
    "ctxgc": "ctxgc.lab.policies_ctxgc:default",
    "ctxgc-lean": "ctxgc.lab.policies_ctxgc:lean",
    "ctxgc-careful": "ctxgc.lab.policies_ctxgc:careful",
    "ctxgc-proven": "ctxgc.lab.policies_ctxgc:proven",
    "ctxgc-calls": "ctxgc.lab.policies_ctxgc:calls",
    "oracle-message": "ctxgc.lab.oracles:message_oracle",
    "oracle-line": "ctxgc.lab.oracles:line_oracle",
    "opencode-prune": "ctxgc.lab.policies_restated:opencode_prune",
    "opencode-prune-eager": "ctxgc.lab.policies_restated:opencode_prune_eager",
    "anthropic-clear": "ctxgc.lab.policies_restated:anthropic_clear",
    "anthropic-clear-30k": "ctxgc.lab.policies_restated:anthropic_clear_30k",
    "mask-keep-1": "ctxgc.lab.policies_restated:mask_keep_1",
    "mask-keep-3": "ctxgc.lab.policies_restated:mask_keep_3",
    "mask-keep-10": "ctxgc.lab.policies_restated:mask_keep_10",
    "mask-10-3": "ctxgc.lab.policies_restated:mask_10_3",
    "mask-30-10": "ctxgc.lab.policies_restated:mask_30_10",
    "mask-oldest": "ctxgc.lab.policies_restated:mask_oldest_results",
    "drop-oldest-half": "ctxgc.lab.policies_restated:drop_oldest_half",
    "truncate-oldest": "ctxgc.lab.policies_restated:truncate_oldest",
    "langchain-trim": "ctxgc.lab.peers.policy:langchain_trim",
    "langchain-clear": "ctxgc.lab.peers.policy:langchain_clear",
    "agent-framework": "ctxgc.lab.peers.policy:agent_framework",
    "litellm-trim": "ctxgc.lab.peers.policy:litellm_trim",
    "headroom": "ctxgc.lab.peers.policy:headroom",
    "headroom-agent": "ctxgc.lab.peers.policy:headroom_agent",
    "contextgc": "ctxgc.lab.peers.policy:contextgc",
    "kompact": "ctxgc.lab.peers.policy:kompact",
    "cozempic": "ctxgc.lab.peers.policy:cozempic",
}
"""Name -> its factory, imported on first use. A new policy is one more line."""


def policy(name: str) -> Policy:
    """Return the policy of this name.

    Raises:
        ConfigError: there is no such policy; the hint names the nearest.
    """
    if name not in POLICIES:
        raise unknown_key(name, POLICIES, "policy")
    module, _, factory = POLICIES[name].partition(":")
    made: Policy = getattr(importlib.import_module(module), factory)()
    return made


def choose_policies(words: Iterable[str]) -> list[str]:
    """Return the policies that words select, each once: a name, all of a kind, or `all`.

    Raises:
        ConfigError: a word is none of these; the hint names the nearest.
    """
    names: dict[str, None] = {}
    for word in words:
        if word in POLICIES:
            names[word] = None
        elif word == _ALL or word in get_args(Kind):
            names |= dict.fromkeys(n for n in POLICIES if word in (_ALL, policy(n).kind))
        else:
            raise unknown_key(word, [*POLICIES, *get_args(Kind), _ALL], "policy")
    return list(names)


class Never:
    """The baseline: every request carries the whole history."""

    name = "never"
    kind: Kind = "base"
    version = __version__

    @property
    def settings(self) -> dict[str, Any]:
        """There is nothing to set."""
        return {}

    def open(self, task: PolicyTask) -> Player:  # noqa: ARG002 - whatever the task
        """Begin a run."""
        return _Whole()


class _Whole:
    def view(self, history: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return list(history)

    def is_recallable(self, index: int) -> bool:  # noqa: ARG002 - nothing ever leaves
        return False

    def counts(self) -> dict[str, float]:
        return {"collections": 0}


def never() -> Policy:
    """Return the base line."""
    return Never()
