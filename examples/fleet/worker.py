"""A worker of a fleet: it takes jobs for any session of a store, and no session is its own.

    python worker.py NAME STORE

A job is a line of JSON on standard input, an answer one on standard output:

    {"do": "say", "session": "support-7", "text": "..."}     append a message and its answer
    {"do": "look", "session": "support-7"}                   the view of a session, as a digest

With `"pause": true` a worker that says something opens the session and waits for one more line. That
is how fleet.py brings two workers into conflict.
"""

from __future__ import annotations

import hashlib
import json
import sys
from typing import Any

from ctxgc import Session
from ctxgc.errors import StoreBusyError
from ctxgc.stores import Store, open_store

WINDOW = 4_000
ATTEMPTS = 5


def say(store: Store, job: dict[str, Any]) -> dict[str, Any]:
    """Append a message to a session, whoever worked on it before, and the model's answer."""
    refusals: list[str] = []
    while True:
        try:
            session = Session(WINDOW, store=store, session_id=job["session"])
            if job.pop("pause", False):
                answer({"paused": True})
                sys.stdin.readline()
            session.append({"role": "user", "content": job["text"]})
            session.append({"role": "assistant", "content": think(session.messages())})
            session.flush()
        except StoreBusyError as error:
            # Another worker was quicker. This session object knows nothing of what that one wrote,
            # so it is thrown away; a new one does.
            refusals.append(error.message)
            if len(refusals) == ATTEMPTS:
                raise
        else:
            return {**look(session), "refusals": refusals}


def think(messages: list[dict[str, Any]]) -> str:
    """Answer as a model would."""
    return f"I have read {messages[-1]['content'][:40]!r}."


def look(session: Session) -> dict[str, Any]:
    """Return what distinguishes two views."""
    view = json.dumps(session.view()).encode()
    return {
        "bytes": len(view),
        "digest": hashlib.sha256(view).hexdigest(),
        "collections": len(session.gc_history),
    }


def answer(value: dict[str, Any]) -> None:
    """Write one line."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def main(name: str, url: str) -> None:
    """Do the jobs that come in. One store serves all sessions; its connections are pooled."""
    store = open_store(url)
    for line in sys.stdin:
        job = json.loads(line)
        if job["do"] == "say":
            answer({"worker": name, **say(store, job)})
        else:
            session = Session(WINDOW, store=store, session_id=job["session"])
            answer({"worker": name, **look(session)})
    store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
