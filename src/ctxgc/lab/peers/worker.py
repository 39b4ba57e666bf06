"""A process that speaks JSON lines: one question, one answer, within a time limit.

Whatever goes wrong on the other side (it cannot start, ends, hangs, or answers nonsense) is a
`PeerError` that says so with the last line of its standard error, and the end of the process.
"""

from __future__ import annotations

import os
import queue
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from typing import IO, Any

import msgspec

from ctxgc.errors import PeerError

PASSED_ON = ("PATH", "LANG", "TMPDIR", "SYSTEMROOT")


class Worker:
    """One process; `ask` as often as you like, until it fails or is closed."""

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
        """Whether it can be asked."""
        return self._process.poll() is None

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to one question.

        Raises:
            PeerError: there is none; the process is gone then.
        """
        if self._end is not None:
            raise self._end
        line = msgspec.json.encode(question) + b"\n"
        # Beside us: a process that does not read would block whoever writes.
        threading.Thread(target=self._write, args=(line,), daemon=True).start()
        try:
            raw = self._answers.get(timeout=self._seconds)
        except queue.Empty:
            raise self._failed(f"no answer in {self._seconds:g} s") from None
        if not raw:
            raise self._failed(f"ended with code {self._process.wait()}")
        return self._read(raw)

    def close(self) -> None:
        """End the process and remove what it wrote."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            _close(pipe)
        self._tidy()

    def _environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return an environment without anything of ours, with a home that is thrown away."""
        passed = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
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
            raise self._failed("answered what is no JSON object") from None
        if "error" in answer:
            raise self._failed(str(answer["error"]))
        return answer

    def _failed(self, reason: str) -> PeerError:
        last = self._last_words()
        self.close()
        self._end = PeerError(reason, hint=f"it said: {last}" if last else "", stderr=last)
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
