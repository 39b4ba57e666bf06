"""The application: who may call, the files of the page, and its data as JSON.

Whoever has the token may look and act. The page gets it as a cookie that only this server sees, when the
address that ctxgc printed is opened; and with its data a second word (CSRF), which it sends along with every
action.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from hashlib import blake2b
from hmac import compare_digest
from typing import Any
from urllib.parse import parse_qs

from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from ctxgc.dashboard.actions import DashboardActions, HoldSession
from ctxgc.dashboard.changes import events
from ctxgc.dashboard.page_files import page_file
from ctxgc.dashboard.sessions import DashboardSessions
from ctxgc.errors import CtxgcError, InputError, StoreBusyError, UnknownHandleError
from ctxgc.gate import caller_of

PATH = "/dashboard"
MOST_BYTES = 64 << 10
MOST_LISTENERS = 32
CSRF_HEADER = "x-ctxgc-csrf"

_HEADERS = {
    "content-security-policy": (
        "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none';"
        " frame-ancestors 'none'; form-action 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_COOKIE_SECONDS = 30 * 86_400
_NOT_FOUND = ("there is no session", "there is no segment")


class DashboardApp:
    """Serves the dashboard under `/dashboard/`.

    Args:
        sessions: what it shows.
        tokens: the token of each caller.
        port: where it listens; part of the allowed Host and Origin, and of the cookie's name.
        hosts: the host names that it may be called by.
        origins: further origins whose pages may call it.
        hold: keeps a session of this process away from its store while an action changes it.
    """

    def __init__(
        self,
        sessions: DashboardSessions,
        *,
        tokens: Mapping[str, str],
        port: int,
        hosts: tuple[str, ...],
        origins: tuple[str, ...] = (),
        hold: HoldSession | None = None,
    ) -> None:
        self._sessions = sessions
        self._actions = DashboardActions(sessions, hold)
        self._tokens = tokens
        self._hosts = frozenset(f"{host}:{port}" for host in hosts)
        self._origins = frozenset({*(f"http://{host}" for host in self._hosts), *origins})
        self._cookie = f"ctxgc_dashboard_{port}"
        self._listeners = 0
        # Analyses are work for the processor: more at a time would only slow each other down.
        self._limiter = CapacityLimiter(2)
        session = f"{PATH}/api/sessions/{{id}}"
        self._inner = Starlette(
            routes=[
                Route(f"{PATH}/api/sessions", self._listed),
                Route(f"{PATH}/api/events", self._events),
                Route(session, self._described),
                Route(f"{session}/timeline", self._timeline),
                Route(f"{session}/plan", self._plan),
                Route(f"{session}/report.html", self._report),
                Route(f"{session}/segments/{{segment:path}}", self._segment),
                Route(f"{session}/actions/{{action}}", self._act, methods=["POST"]),
                Route(f"{PATH}/api/{{rest:path}}", _no_such),
                Route(PATH, self._enter),
                Route(f"{PATH}/", self._enter),
                Route(f"{PATH}/{{name:path}}", _file),
            ],
            exception_handlers={CtxgcError: _refused},
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = [(k.encode(), v.encode()) for k, v in _HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *given]}
            await send(message)

        refusal = self._refusal(scope)
        await (refusal or self._inner)(scope, receive, guarded)

    # -- who may call -------------------------------------------------------------------------------

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the answer to a request that may not come in."""
        headers, path = Headers(scope=scope), scope["path"]
        if headers.getlist("host") not in [[host] for host in self._hosts]:
            return _error(421, "refused", "this dashboard is not called by that Host")
        if any(origin not in self._origins for origin in headers.getlist("origin")):
            return _error(403, "refused", "this Origin may not call the dashboard")
        if not path.startswith(f"{PATH}/api/"):
            return None
        token = self._token(scope)
        if token is None:
            return _error(
                401, "refused", "the dashboard needs its token",
                "open the address that ctxgc printed when it started: the token is in it",
            )  # fmt: skip
        if scope["method"] == "POST" and not compare_digest(
            csrf_of(token).encode(), headers.get(CSRF_HEADER, "").encode("utf-8", "replace")
        ):
            return _error(
                403, "refused", f"an action needs the header {CSRF_HEADER}", "load the page again"
            )
        return None

    def _token(self, scope: Scope) -> str | None:
        """Return the token of a request, from its header or its cookie, if it is a known one."""
        headers = Headers(scope=scope)
        kind, _, bearer = headers.get("authorization", "").partition(" ")
        given = bearer.strip() if kind.lower() == "bearer" else ""
        given = given or Request(scope).cookies.get(self._cookie, "")
        return given if caller_of(self._tokens, given) is not None else None

    async def _enter(self, request: Request) -> Response:
        """Take the token out of the address and into a cookie; show the page."""
        token = parse_qs(request.url.query).get("token", [""])[0]
        if token and caller_of(self._tokens, token) is not None:
            answer = RedirectResponse(f"{PATH}/", 303)
            answer.set_cookie(
                self._cookie, token, max_age=_COOKIE_SECONDS, path=f"{PATH}/", httponly=True,
                samesite="strict",
            )  # fmt: skip
            return answer
        return RedirectResponse(f"{PATH}/", 307) if request.url.path == PATH else _page("")

    # -- answers ------------------------------------------------------------------------------------

    async def _listed(self, request: Request) -> Response:
        found = await self._run(self._sessions.listed)
        csrf = csrf_of(self._token(request.scope) or "")
        return JSONResponse({**found, "actions": True, "csrf": csrf})

    async def _described(self, request: Request) -> Response:
        return JSONResponse(await self._run(self._sessions.described, request.path_params["id"]))

    async def _timeline(self, request: Request) -> Response:
        body = await self._run(self._sessions.timeline_json, request.path_params["id"])
        return Response(body, media_type="application/json")

    async def _segment(self, request: Request) -> Response:
        said = request.path_params
        return JSONResponse(await self._run(self._sessions.detail, said["id"], said["segment"]))

    async def _plan(self, request: Request) -> Response:
        target = request.query_params.get("target")
        return JSONResponse(await self._run(self._sessions.plan, request.path_params["id"], target))

    async def _report(self, request: Request) -> Response:
        name = request.path_params["id"]
        page = await self._run(self._sessions.report, name)
        # Its program is in the file itself, which this server forbids to pages of its own.
        headers = {"content-disposition": f'attachment; filename="{name}.html"'}
        return Response(page.encode("utf-8", "replace"), media_type="text/html", headers=headers)

    async def _act(self, request: Request) -> Response:
        body = await _body(request)
        said = request.path_params
        return JSONResponse(await self._run(self._actions.do, said["id"], said["action"], body))

    async def _events(self, _request: Request) -> Response:
        if self._listeners >= MOST_LISTENERS:
            return _error(503, "busy", "too many pages listen", "close some")

        async def told() -> Any:
            self._listeners += 1
            try:
                async for event in events(self._sessions.store):
                    yield event
            finally:
                self._listeners -= 1

        return StreamingResponse(told(), media_type="text/event-stream")

    async def _run(self, work: Callable[..., Any], *given: Any) -> Any:
        return await to_thread.run_sync(work, *given, limiter=self._limiter)


def csrf_of(token: str) -> str:
    """Return the word that shows that whoever acts has read the data of the page with this token."""
    return blake2b(b"csrf", key=token.encode()[:64], digest_size=16).hexdigest()


async def _body(request: Request) -> dict[str, Any]:
    """Return the body of an action.

    Raises:
        InputError: it is too long, or not a JSON object.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise InputError(
            "the body must be JSON", hint="content-type: application/json", field="body"
        )
    raw = bytearray()
    async for piece in request.stream():
        raw += piece
        if len(raw) > MOST_BYTES:
            raise InputError(
                f"the body may have {MOST_BYTES} bytes", hint="send less", field="body"
            )
    try:
        said = json.loads(bytes(raw) or b"{}")
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise InputError("the body must be a JSON object", hint="send {}", field="body")
    return said


async def _file(request: Request) -> Response:
    return _page(request.path_params["name"])


def _page(name: str) -> Response:
    found = page_file(name)
    if found is None:
        return _error(404, "not_found", "there is no such page")
    return Response(found.body, media_type=found.media_type)


async def _no_such(_request: Request) -> Response:
    return _error(404, "not_found", "there is no such thing")


async def _refused(_request: Request, error: Exception) -> Response:
    """Return what went wrong, as the page shows it."""
    if not isinstance(error, CtxgcError):
        raise error
    is_missing = isinstance(error, UnknownHandleError) or error.message.startswith(_NOT_FOUND)
    status = 404 if is_missing else 409 if isinstance(error, StoreBusyError) else 400
    return _error(status, error.code, error.message, error.hint)


def _error(status: int, code: str, message: str, hint: str = "") -> JSONResponse:
    return JSONResponse({"error": {"code": code, "message": message, "hint": hint}}, status)
