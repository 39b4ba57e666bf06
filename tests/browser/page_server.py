"""A server of the dashboard's page with made-up answers, for what the real application seldom says."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from bench.dashboard_case import row, timeline
from ctxgc.dashboard import page_file

POLICY = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'"
ACTIONS = {
    "pin": "unpin", "unpin": "pin", "recall": "undo", "stash": "recall", "delete": None,
    "collect": "undo", "undo": "collect",
    "checkpoint": None, "restore": "restore", "policy": "policy", "export": None, "continue_from": "undo",
}  # fmt: skip


class Answers:
    """What the server says: sessions, one timeline, details of segments, a plan; it notes every action."""

    def __init__(self, *, requests: int = 40, segments: int = 60, words: str = "") -> None:
        self.timeline = timeline(requests, segments)
        self.words = words
        self.acted: list[tuple[str, dict[str, Any]]] = []
        self.actions = list(ACTIONS)
        self.events: list[dict[str, Any]] = []
        self.changed = threading.Condition()
        self.rows = [self.timeline["row"],
                     row(3, id="stored.child", title="A subagent", parent="stored.made", kind="live",
                         cost_today=None, saved=None, saved_percent=None)]  # fmt: skip
        if words:
            self._hostile()

    def _hostile(self) -> None:
        for one in [*self.rows, *self.timeline["segments"], *self.timeline["changes"]]:
            one.update({name: self.words for name, value in one.items()
                        if isinstance(value, str) and name in _TEXTS})  # fmt: skip
        for request in self.timeline["requests"]:
            request["cache_cause"] = request["cache_cause"] and self.words

    def text(self, usual: str) -> str:
        return self.words or usual

    def get(self, path: str, query: dict[str, list[str]]) -> Any:
        """Return the answer to a GET below `api/`, or None."""
        match path.split("/"):
            case ["sessions"]:
                return self.sessions()
            case ["sessions", _]:
                return self.about()
            case ["sessions", _, "timeline"]:
                return self.timeline
            case ["sessions", _, "segments", segment]:
                return self.segment(unquote(segment))
            case ["sessions", _, "plan"]:
                return self.plan(int(query.get("target", ["100000"])[0]))
        return None

    def sessions(self) -> dict[str, Any]:
        days = [{"day": f"2026-11-{day}", "cost": day / 4, "input": 1000, "cache_read": 90_000 * day,
                 "cache_write": 20_000, "output": 9_000, "sessions": 2} for day in range(10, 19)]  # fmt: skip
        projects = [{"project": self.text("/home/u/shop"), "cost": 31.5, "sessions": 9}]
        return {"sessions": self.rows, "trends": {"days": days, "projects": projects}, "actions": True,
                "csrf": "secret", "version": "1"}  # fmt: skip

    def about(self) -> dict[str, Any]:
        return {
            "row": self.timeline["row"], "actions": self.actions,
            "checkpoints": [{"id": "c1", "label": self.text("before the change"), "at": None, "request": 3}],
            "tools": [{"tool": self.text("Read"), "server": self.text("files"), "calls": 7,
                       "tokens": 9_000, "cost": 0.1}],
            "files": [{"path": self.text("src/a.py"), "reads": 3, "tokens": 5_000}],
            "uncalled_tools": [{"tool": self.text("Draw"), "tokens": 800}],
        }  # fmt: skip

    def segment(self, name: str) -> dict[str, Any]:
        seg = next(one for one in self.timeline["segments"] if one["id"] == name)
        other = [{"segment": "s-1", "label": self.text("a later read")}]
        return {
            "seg": seg, "text": self.text("def total(): ..."), "tombstone": self.text("[stub of a file]"),
            "original": self.text("def total():\n    return 1"), "handle": "h-7",
            "reasons": [{"rule": self.text("superseded"), "text": self.text("the file was read again")}],
            "chain": [{"segment": "s-0", "label": self.text("the task"), "link": ""},
                      {"segment": name, "label": seg["label"], "link": self.text("fetched for")}],
            "superseded_by": other, "copies": other,
        }  # fmt: skip

    def plan(self, target: int) -> dict[str, Any]:
        words = self.text("superseded: read again at request 31")
        entry = {"segment": "s-4", "label": self.text("Read src/module_4.py"),
                 "action": self.text("evacuate"), "why": words, "tokens": 900, "dollars": 0.02}  # fmt: skip
        return {"entries": [entry], "tokens_before": 120_000, "tokens_after": target, "rewritten": 3_000,
                "requests_to_pay_back": 2.4, "dollars_saved_per_request": 0.004,
                "diff": [{"segment": "s-4", "before": self.text("long text"),
                          "after": self.text("stub")}]}  # fmt: skip

    def act(self, name: str, body: dict[str, Any]) -> dict[str, Any]:
        """Note an action and answer it; each that can be undone offers to."""
        self.acted.append((name, body))
        back = ACTIONS[name]
        undo = None if back is None else {"action": back, "body": body}
        done = {
            "ok": True,
            "done": self.text(f"{name} is done"),
            "undo": undo,
            "row": self.timeline["row"],
        }
        return {**done, "file": {"name": "made.json", "text": "{}"}} if name == "export" else done

    def announce(self, event: dict[str, Any]) -> None:
        """Tell those who listen that a session changed."""
        with self.changed:
            self.events.append(event)
            self.changed.notify_all()


_TEXTS = ("label", "title", "project", "agent", "model", "why", "handle", "tool", "file")


@contextmanager
def served(answers: Answers) -> Iterator[str]:
    """Serve the page with these answers, and give its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(answers))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/dashboard/"
    with answers.changed:
        answers.changed.notify_all()
    server.shutdown()
    server.server_close()


def _handler(answers: Answers) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            name = parts.path.removeprefix("/dashboard/")
            if name == "api/events":
                self._events()
            elif name.startswith("api/"):
                self._say(answers.get(name.removeprefix("api/"), parse_qs(parts.query)))
            else:
                self._file(name)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if self.headers["x-ctxgc-csrf"] != "secret":
                self._say({"error": {"code": "csrf", "message": "no token", "hint": ""}}, 403)
            else:
                self._say(answers.act(self.path.rsplit("/", 1)[1], body))

        def _file(self, name: str) -> None:
            found = page_file(name)
            if found is None:
                self.send_error(404)
            else:
                self._send(found.body, found.media_type)

        def _say(self, found: Any, status: int = 200) -> None:
            self._send(json.dumps(found).encode(), "application/json", status)

        def _send(self, body: bytes, media_type: str, status: int = 200) -> None:
            self.send_response(status)
            for name, value in (("content-type", media_type), ("content-length", str(len(body))),
                                ("content-security-policy", POLICY)):  # fmt: skip
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def _events(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            self.wfile.write(b": here\n\n")
            self.wfile.flush()
            with answers.changed:
                answers.changed.wait_for(lambda: answers.events, timeout=30)
                for event in answers.events:
                    self.wfile.write(f"event: session\ndata: {json.dumps(event)}\n\n".encode())
                answers.events = []

        def log_message(self, *given: Any) -> None:
            pass

    return Handler
