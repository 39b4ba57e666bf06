"""A strict model provider on loopback: both protocols, streams, usage, and the real refusals."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ctxgc.errors import CtxgcError
from ctxgc.testing.counting import default_count
from ctxgc.testing.model import RecordedRequest, Refusal, Scripted, ScriptedModel
from ctxgc.testing.serve.desk import Desk
from ctxgc.testing.serve.faults import Fault, FaultQueue
from ctxgc.testing.serve.prompt import Count
from ctxgc.testing.serve.settings import make_settings

if TYPE_CHECKING:
    import uvicorn

    from ctxgc.testing.serve.app import App

PATIENCE_SECONDS = 10.0


class StrictServer:
    """Serves a scripted model over HTTP while its `with` block runs.

    It speaks OpenAI's chat completions and Responses and Anthropic's messages, streamed and
    whole, counts tokens and cache hits as the providers do, and refuses what they refuse, in
    their words. `model` is a `ScriptedModel` or a list of turns for one; `settings` are the
    fields of `ctxgc.testing.Settings`, for example `context_limit=8_000`.
    """

    def __init__(
        self,
        model: ScriptedModel | Iterable[Scripted] = (),
        *,
        count: Count = default_count,
        **settings: Any,
    ) -> None:
        self.model = model if isinstance(model, ScriptedModel) else ScriptedModel(model)
        self._desk = Desk(self.model, make_settings(settings), count)
        self._faults = FaultQueue()
        self._started = threading.Event()
        self._socket: socket.socket | None = None
        self._app: App | None = None
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def base_url(self) -> str:
        """The address for Anthropic's SDK; the paths start with `/v1`."""
        if self._socket is None:
            raise CtxgcError("the server is not running", hint="use it in a `with` block")
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    @property
    def openai_base_url(self) -> str:
        """The address for OpenAI's SDK, which expects `/v1` in it."""
        return f"{self.base_url}/v1"

    @property
    def requests(self) -> list[RecordedRequest]:
        """The requests that the model answered, in order."""
        return self.model.requests

    @property
    def refusals(self) -> list[Refusal]:
        """The requests that were refused, each with every rule it broke."""
        return self._desk.refusals

    @property
    def script_errors(self) -> list[Exception]:
        """What functions in the script raised, and requests after the end of the script."""
        return self._desk.script_errors

    def fail_next(
        self,
        status: int = 500,
        n: int = 1,
        *,
        retry_after: float | None = None,
        message: str | None = None,
    ) -> None:
        """Refuse the next `n` requests: 429, 500, 503, 529 or any other status."""
        fault = Fault(status=status, message=message, retry_after=retry_after)
        self._faults.add(fault, n)

    def delay_next(self, seconds: float, n: int = 1) -> None:
        """Let the next `n` requests wait for their answer, or until the server closes."""
        self._faults.add(Fault(delay=seconds), n)

    def cut_next(self, after_events: int = 2, n: int = 1) -> None:
        """Break the connection of the next `n` answers, streams after so many events."""
        self._faults.add(Fault(cut_after=after_events), n)

    def expire_cache(self) -> None:
        """Forget all cached prefixes, as after their lifetime."""
        self._desk.cache.clear()

    def start(self) -> Self:
        """Bind a free port on 127.0.0.1 and serve from a thread; returns when requests are taken."""
        if self._thread is not None:
            raise CtxgcError("the server is running already", hint="make another StrictServer")
        uvicorn, app_type = _web()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._app = app_type(self._desk, self._faults, self._started.set)
        config = uvicorn.Config(
            self._app.build(),
            log_config=None,
            access_log=False,
            ws="none",
            lifespan="on",
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="ctxgc-strict-server", daemon=True)
        self._thread.start()
        if not self._started.wait(PATIENCE_SECONDS):
            self.close()
            raise CtxgcError("the strict server did not start in time", hint="see its log")
        return self

    def close(self) -> None:
        """Stop serving; waiting requests are answered first. Closing twice is fine."""
        if self._server is None or self._thread is None or self._app is None:
            return
        self._app.close()
        self._server.should_exit = True
        self._thread.join(PATIENCE_SECONDS)
        if self._socket is not None:
            self._socket.close()

    def _run(self) -> None:
        if self._server is not None and self._socket is not None:
            self._server.run(sockets=[self._socket])


def _web() -> tuple[Any, type[App]]:
    """Import what only a running server needs."""
    try:
        import uvicorn  # noqa: PLC0415  only a server that starts needs it

        from ctxgc.testing.serve.app import App  # noqa: PLC0415
    except ImportError as error:
        raise CtxgcError(
            f"the strict server needs {error.name}",
            hint="pip install 'ctxgc[serve]'",
            package=error.name,
        ) from error
    return uvicorn, App
