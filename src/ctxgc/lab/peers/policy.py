"""A peer as a policy of the lab: it sees what is new before each request and says what is sent."""

from __future__ import annotations

import atexit
import weakref
from pathlib import Path
from typing import Any

from ctxgc.errors import PeerError
from ctxgc.lab.peers.catalog import PEERS, Peer
from ctxgc.lab.peers.environments import interpreter
from ctxgc.lab.peers.worker import Worker
from ctxgc.lab.policies import Kind, Player, Policy, Task

Json = dict[str, Any]

WORKERS = Path(__file__).with_name("workers")
SECONDS = 120.0


class Pool:
    """Processes that wait for their next run; importing a library can take longer than a run."""

    def __init__(self) -> None:
        self._idle: dict[str, list[Worker]] = {}

    def take(self, peer: Peer, seconds: float) -> Worker:
        """Return a process of this peer that nobody else uses."""
        waiting = self._idle.get(peer.name, [])
        while waiting:
            worker = waiting.pop()
            if worker.is_alive:
                return worker
        script = str(WORKERS / f"{peer.worker}.py")
        return Worker([str(interpreter(peer.package)), script], peer.package.env, seconds)

    def give_back(self, peer: Peer, worker: Worker) -> None:
        """Keep a process for the next run, if it still lives."""
        if worker.is_alive:
            self._idle.setdefault(peer.name, []).append(worker)

    def close(self) -> None:
        """End all processes that wait."""
        for workers in self._idle.values():
            for worker in workers:
                worker.close()
        self._idle.clear()


POOL = Pool()
atexit.register(POOL.close)


class PeerPolicy:
    """One way to use another library."""

    kind: Kind = "peer"

    def __init__(self, peer: Peer, pool: Pool = POOL, seconds: float = SECONDS) -> None:
        self.name = peer.name
        self.version = peer.package.requirement.replace("==", " ")
        self._peer = peer
        self._pool = pool
        self._seconds = seconds

    @property
    def settings(self) -> Json:
        """What it is set to in COST with 200k tokens; WINDOW changes only what its limit changes."""
        return {**self._peer.choose("cost", 200_000), "note": self._peer.note}

    def open(self, task: Task) -> Player:
        """Begin a run.

        Raises:
            PeerError: the library is not installed, or does not work here.
        """
        worker = self._pool.take(self._peer, self._seconds)
        player = PeerPlayer(worker)
        weakref.finalize(player, self._pool.give_back, self._peer, worker)
        worker.ask({"open": self._peer.choose(task.regime, task.limit)})
        return player


class PeerPlayer:
    """One run in the hands of a peer."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._known = 0

    def view(self, history: list[Json]) -> list[Json]:
        """Return what the peer would send.

        Raises:
            PeerError: it crashed, hung, or answered what is no view.
        """
        new, self._known = history[self._known :], len(history)
        answer = self._worker.ask({"history": new})
        return [_message(entry, history) for entry in _entries(answer)]

    def is_recallable(self, index: int) -> bool:  # noqa: ARG002 - no peer leaves one
        """Tell that no handle can be followed here."""
        return False

    def counts(self) -> dict[str, float]:
        """Return nothing: peers do not report their collections."""
        return {}


def _entries(answer: Json) -> list[Any]:
    view = answer.get("view")
    if not isinstance(view, list):
        raise PeerError("answered without a view", hint="a worker answers {'view': [...]}")
    return view


def _message(entry: object, history: list[Json]) -> Json:
    """Return the message that an entry of a view stands for: itself, or one of the history."""
    if isinstance(entry, dict):
        return entry
    if isinstance(entry, int) and 0 <= entry < len(history):
        return history[entry]
    raise PeerError(f"answered {entry!r} where a message stands in a view")


# -- the registry's factories -----------------------------------------------------------------------


def langchain_trim() -> Policy:
    """Return LangChain's `trim_messages`."""
    return PeerPolicy(PEERS["langchain-trim"])


def langchain_clear() -> Policy:
    """Return LangChain's `ClearToolUsesEdit`."""
    return PeerPolicy(PEERS["langchain-clear"])


def agent_framework() -> Policy:
    """Return agent-framework's `TruncationStrategy`."""
    return PeerPolicy(PEERS["agent-framework"])


def litellm_trim() -> Policy:
    """Return LiteLLM's `trim_messages`."""
    return PeerPolicy(PEERS["litellm-trim"])


def headroom() -> Policy:
    """Return headroom's `compress`."""
    return PeerPolicy(PEERS["headroom"])


def headroom_agent() -> Policy:
    """Return headroom's `compress` in its mode for live agents."""
    return PeerPolicy(PEERS["headroom-agent"])


def contextgc() -> Policy:
    """Return contextgc's `compile_messages`."""
    return PeerPolicy(PEERS["contextgc"])


def kompact() -> Policy:
    """Return kompact's pipeline."""
    return PeerPolicy(PEERS["kompact"])


def cozempic() -> Policy:
    """Return cozempic's guard."""
    return PeerPolicy(PEERS["cozempic"])
