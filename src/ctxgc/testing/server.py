"""A strict model provider on loopback: three protocols, streams, usage, and the providers' errors."""

from __future__ import annotations

import importlib
import socket
import threading
from collections.abc import Iterable
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, Self

from ctxgc.errors import CtxgcError
from ctxgc.testing.model import RecordedRequest, Refusal, Scripted, ScriptedModel, default_count
from ctxgc.testing.serve.cache import Count
from ctxgc.testing.serve.provider import StrictProvider
from ctxgc.testing.serve.settings import Fault, FaultQueue, make_settings

if TYPE_CHECKING:
    from ctxgc.testing.serve.app import App

PATIENCE_SECONDS = 60.0


class StrictServer:
    """Serves a scripted model over HTTP while its `with` block runs.

    It implements OpenAI's chat completions and Responses and Anthropic's messages, streamed or not,
    counts tokens and cache hits as the providers do, and refuses what they refuse, in their words.
    `model` is a `ScriptedModel` or a list of turns for one; `settings` are the fields of
    `ctxgc.testing.Settings`, for example `context_limit=8_000`.
    """

    def __init__(
        self,
        model: ScriptedModel | Iterable[Scripted] = (),
        *,
        count: Count = default_count,
        **settings: Any,
    ) -> None:
        self.model = model if isinstance(model, ScriptedModel) else ScriptedModel(model)
        self._provider = StrictProvider(self.model, make_settings(settings), count)
        self._faults = FaultQueue()
        self._started = threading.Event()
        self._socket: socket.socket | None = None
        self._app: App | None = None
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
        """The base URL for Anthropic's SDK, which adds `/v1` itself."""
        if self._socket is None:
            raise CtxgcError("the server is not running", hint="use it in a `with` block")
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    @property
    def openai_base_url(self) -> str:
        """The base URL for OpenAI's SDK, which includes `/v1`."""
        return f"{self.base_url}/v1"

    @property
    def requests(self) -> list[RecordedRequest]:
        """The requests that the model answered, in order."""
        return self.model.requests

    @property
    def refusals(self) -> list[Refusal]:
        """The requests that were refused, each with every rule that it broke."""
        return self._provider.refusals

    @property
    def script_errors(self) -> list[Exception]:
        """Errors that functions in the script raised, and those of requests after its end."""
        return self._provider.script_errors

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
        """Delay the next `n` answers by so many seconds, or until the server closes."""
        self._faults.add(Fault(delay=seconds), n)

    def cut_next(self, after_events: int = 2, n: int = 1) -> None:
        """Break the connection of the next `n` answers; streams after `after_events` events."""
        self._faults.add(Fault(cut_after=after_events), n)

    def expire_cache(self) -> None:
        """Expire all cached prefixes."""
        self._provider.cache.clear()

    def start(self) -> Self:
        """Bind a free port on 127.0.0.1 and serve from a thread; returns when it accepts requests."""
        if self._thread is not None:
            raise CtxgcError("the server is already running", hint="create another StrictServer")
        app = _web()
        self._started.clear()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._app = app.App(self._provider, self._faults, self._started.set)
        server = app.AppServer(self._app)
        self._thread = threading.Thread(
            target=server.run, args=([self._socket],), name="ctxgc-strict-server", daemon=True
        )
        self._thread.start()
        if not self._started.wait(PATIENCE_SECONDS):
            self.close()
            raise CtxgcError("the strict server did not start in time", hint="see its log")
        return self

    def close(self) -> None:
        """Stop serving; pending requests are answered first. Closing twice is allowed."""
        if self._thread is None or self._app is None or self._socket is None:
            return
        self._app.close()
        self._thread.join(PATIENCE_SECONDS)
        self._socket.close()
        self._thread = self._app = self._socket = None


def _web() -> ModuleType:
    """Return the module that only a running server needs."""
    try:
        return importlib.import_module("ctxgc.testing.serve.app")
    except ImportError as error:
        raise CtxgcError(
            f"the strict server needs {error.name}",
            hint="pip install 'ctxgc[serve]'",
            package=error.name,
        ) from error
