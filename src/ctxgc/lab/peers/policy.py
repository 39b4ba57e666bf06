"""Peers as policies of the lab: each library runs in worker processes of its own environment."""

from __future__ import annotations

import atexit
import os
import queue
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import msgspec

from ctxgc.errors import PeerError
from ctxgc.lab.peers.catalog import PEERS, Peer, interpreter
from ctxgc.lab.policies import Kind, Player, Policy, PolicyTask

_PASSED_ON = ("PATH", "LANG", "TMPDIR", "SYSTEMROOT")


class Worker:
    """A process that answers questions in JSON lines, each within a time limit."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], seconds: float) -> None:
        self._seconds = seconds
        self._end: PeerError | None = None
        self._home = tempfile.TemporaryDirectory(prefix="ctxgc-peer-")
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the command is ours, no shell
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._said,
                env=self._environment(env),
                cwd=self._home.name,
            )
        except OSError as error:
            self._tidy()
            raise PeerError(f"cannot start: {error.strerror}", hint="install it again") from None
        threading.Thread(target=self._listen, args=(self._process.stdout,), daemon=True).start()

    @property
    def is_alive(self) -> bool:
        """Whether the process is running."""
        return self._process.poll() is None

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to one question.

        Raises:
            PeerError: there is none; the process has ended then.
        """
        if self._end is not None:
            raise self._end
        line = msgspec.json.encode(question) + b"\n"
        # In a thread: a process that does not read would block the writer.
        threading.Thread(target=self._write, args=(line,), daemon=True).start()
        try:
            raw = self._answers.get(timeout=self._seconds)
        except queue.Empty:
            raise self._failed(f"no answer in {self._seconds:g} s") from None
        if not raw:
            raise self._failed(f"ended with code {self._process.wait()}")
        return self._read(raw)

    def close(self) -> None:
        """Kill the process and remove its files."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            _close(pipe)
        self._tidy()

    def _environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return a clean environment with a temporary home."""
        passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        fixed = {"HOME": self._home.name, "PYTHONHASHSEED": "0", "PYTHONUTF8": "1"}
        return {**passed, **fixed, **env}

    def _write(self, line: bytes) -> None:
        pipe = self._process.stdin
        try:
            if pipe is not None:
                pipe.write(line)
                pipe.flush()
        except (OSError, ValueError):
            return  # it ended: the listener says so

    def _listen(self, pipe: IO[bytes] | None) -> None:
        try:
            for line in pipe or ():
                self._answers.put(line)
        except (OSError, ValueError):
            pass  # closed while we read
        self._answers.put(b"")

    def _read(self, raw: bytes) -> dict[str, Any]:
        try:
            answer = msgspec.json.decode(raw, type=dict[str, Any])
        except msgspec.DecodeError:
            raise self._failed("the answer is not a JSON object") from None
        if "error" in answer:
            raise self._failed(str(answer["error"]))
        return answer

    def _failed(self, reason: str) -> PeerError:
        last = self._last_words()
        self.close()
        self._end = PeerError(reason, hint=f"its last line: {last}" if last else "", stderr=last)
        return self._end

    def _last_words(self) -> str:
        self._said.seek(0, os.SEEK_END)
        self._said.seek(max(0, self._said.tell() - 4096))
        said = self._said.read().decode("utf-8", "replace").splitlines()
        return next((line.strip() for line in reversed(said) if line.strip()), "")

    def _tidy(self) -> None:
        self._said.close()
        self._home.cleanup()


def _close(pipe: IO[bytes] | None) -> None:
    try:
        if pipe is not None:
            pipe.close()
    except OSError:
        pass  # what was not read any more


Json = dict[str, Any]

WORKERS = Path(__file__).with_name("workers")
_SECONDS = 120.0


class WorkerPool:
    """Idle worker processes, kept for the next run: importing a library can take longer than a run."""

    def __init__(self) -> None:
        self._idle: dict[str, list[Worker]] = {}

    def take(self, peer: Peer, seconds: float) -> Worker:
        """Return an idle process of this peer, or a new one."""
        waiting = self._idle.get(peer.name, [])
        while waiting:
            worker = waiting.pop()
            if worker.is_alive:
                return worker
        script = str(WORKERS / f"{peer.worker}.py")
        return Worker([str(interpreter(peer.package)), script], peer.package.env, seconds)

    def give_back(self, peer: Peer, worker: Worker) -> None:
        """Keep a process for the next run, if it is still running."""
        if worker.is_alive:
            self._idle.setdefault(peer.name, []).append(worker)

    def close(self) -> None:
        """Kill all idle processes."""
        for workers in self._idle.values():
            for worker in workers:
                worker.close()
        self._idle.clear()


_POOL = WorkerPool()
atexit.register(_POOL.close)


class PeerPolicy:
    """A policy that prunes with another library."""

    kind: Kind = "peer"

    def __init__(self, peer: Peer, pool: WorkerPool = _POOL, seconds: float = _SECONDS) -> None:
        self.name = peer.name
        self.version = peer.package.requirement.replace("==", " ")
        self._peer = peer
        self._pool = pool
        self._seconds = seconds

    @property
    def settings(self) -> Json:
        """Its settings in COST with 200k tokens; WINDOW changes only what depends on the limit."""
        return {**self._peer.choose("cost", 200_000), "note": self._peer.note}

    def open(self, task: PolicyTask) -> Player:
        """Begin a run.

        Raises:
            PeerError: the library is not installed, or does not work here.
        """
        worker = self._pool.take(self._peer, self._seconds)
        player = _PeerPlayer(worker)
        weakref.finalize(player, self._pool.give_back, self._peer, worker)
        worker.ask({"open": self._peer.choose(task.regime, task.limit)})
        return player


class _PeerPlayer:
    """One run, pruned by a peer."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._known = 0

    def view(self, history: list[Json]) -> list[Json]:
        """Return what the peer would send.

        Raises:
            PeerError: it crashed, hung, or did not answer with a view.
        """
        new, self._known = history[self._known :], len(history)
        answer = self._worker.ask({"history": new})
        return [_message(entry, history) for entry in _entries(answer)]

    def is_recallable(self, index: int) -> bool:  # noqa: ARG002 - no peer leaves one
        """Return False: peers have no handles."""
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
    """Return the message of a view entry: the entry itself, or the message of the history with its number."""
    if isinstance(entry, dict):
        return entry
    if isinstance(entry, int) and 0 <= entry < len(history):
        return history[entry]
    raise PeerError(f"answered {entry!r} in place of a message")


# -- Factories for the registry


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
