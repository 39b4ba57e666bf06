"""Child processes that can be killed: forked, so that a round costs milliseconds."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
import traceback
from collections.abc import Callable
from pathlib import Path

DEADLINE = 60.0


class Child:
    """A forked process that waits for `go`, does its work and tells about it on a pipe."""

    def __init__(self, work: Callable[[int], None]) -> None:
        self._reader, writer = os.pipe()
        gate, self._gate = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._gate)
            _work(work, gate, writer)
        os.close(writer)
        os.close(gate)
        self.status: int | None = None

    def go(self) -> None:
        """Let it start; closing would not do, for children that were forked later hold it too."""
        os.write(self._gate, b"go")
        os.close(self._gate)

    def wait_for_work(self) -> None:
        """Wait until it has acknowledged something, or ended."""
        select.select([self._reader], [], [])

    def kill(self) -> None:
        """Kill it without warning."""
        os.kill(self.pid, signal.SIGKILL)

    def acknowledged(self) -> list[int]:
        """Wait until it ends, and return the numbers that it acknowledged."""
        data = b""
        while piece := os.read(self._reader, 65536):
            data += piece
        os.close(self._reader)
        self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return [int(line) for line in data.split(b"\n")[:-1]]


def _work(work: Callable[[int], None], gate: int, pipe: int) -> None:
    code = 1
    try:
        select.select([gate], [], [])  # not `read`, which may have a fault injected
        work(pipe)
        code = 0
    except BaseException:  # noqa: BLE001 (nothing may leave a forked child)
        traceback.print_exc()
    finally:
        os._exit(code)


def inject(child: Child, what: str) -> subprocess.Popen[bytes]:
    """Attach strace to a child that waits, with one injection such as `fsync:error=EIO:when=3`."""
    calls = what.partition(":")[0]
    tracer = subprocess.Popen(
        ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={calls}", "-e", f"inject={what}",
         "-p", str(child.pid)],
        stderr=subprocess.PIPE,
    )  # fmt: skip
    status, deadline = Path(f"/proc/{child.pid}/status"), time.monotonic() + DEADLINE
    while "TracerPid:\t0" in status.read_text(encoding="utf-8"):
        if tracer.poll() is not None or time.monotonic() > deadline:
            said = tracer.stderr.read().decode() if tracer.stderr else ""
            child.kill()
            raise RuntimeError(f"strace cannot attach: {said}")
        time.sleep(0.001)
    return tracer
