"""Stash at birth: a huge tool output enters the conversation evacuated.

The original is durable in the stash first; only then is the agent given another text, with the head, the
tail, the matching lines and a tombstone that names the exact call to see the rest.
"""

from __future__ import annotations

import os
import time
from base64 import b32encode
from typing import Any

from ctxgc.agents.excerpt import excerpt, words_in
from ctxgc.agents.log import note
from ctxgc.agents.outputs import Path, texts_of, whole_output, with_texts
from ctxgc.agents.settings import HookSettings
from ctxgc.agents.transcript import last_request
from ctxgc.stores.inbox import leave

Json = dict[str, Any]

LIMIT = 16_000
LIMITS = {"Read": 60_000}
"""Characters from which an output is huge. A file is read to be worked on, so it may be longer."""

OPENING = "[ctxgc:"
LIMIT_VARIABLE = "CTXGC_HUGE_OUTPUT"


def post_tool_use(settings: HookSettings, said: Json) -> Json | None:
    """Return the output that takes the place of a huge one; None leaves it as it is."""
    tool, output = str(said.get("tool_name", "")), whole_output(said.get("tool_response"))
    huge = [
        (path, text)
        for path, text in texts_of(tool, output)
        if len(text) > limit_of(tool) and not text.startswith(OPENING)
    ]
    if not huge:
        return None
    words = words_in(*_strings(said.get("tool_input")), last_request(said.get("transcript_path")))
    texts = {path: _evacuate(settings, said, path, text, words) for path, text in huge}
    return _answer(settings.agent, output, texts)


def limit_of(tool: str) -> int:
    """Return from how many characters on an output of a tool is huge; the environment may say it."""
    said = os.environ.get(LIMIT_VARIABLE, "")
    return int(said) if said.isdecimal() else LIMITS.get(tool, LIMIT)


def _evacuate(settings: HookSettings, said: Json, path: Path, text: str, words: list[str]) -> str:
    handle = f"h-{b32encode(os.urandom(10)).decode().lower()}"
    session = f"{settings.agent}/{str(said.get('session_id') or 'unknown')[:80]}"
    leave(settings.store_url, session, handle, _segment(said, path, text, handle))
    tool = str(said.get("tool_name", ""))
    stub = f"{_tombstone(settings, said, text, handle)}\n{excerpt(text, words)}"
    note(settings, "post-tool-use", f"{tool} {len(text)} characters -> {len(stub)}, {handle}")
    return stub


def _segment(said: Json, path: Path, text: str, handle: str) -> Json:
    """Return a segment as JSON values: what it is, and where it came from."""
    given = said.get("tool_input")
    given = given if isinstance(given, dict) else {}
    file = given.get("file_path")
    command = given.get("command")
    return {
        "segment_id": f"seg-{handle[2:]}",
        "text": text,
        "type": "code" if isinstance(file, str) else "log",
        "role": "tool",
        "tier": "stashed",
        "trust": "tool",
        "tokens": _tokens(text),
        "created_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "tags": [f"tool:{said.get('tool_name', '')}", f"field:{'.'.join(map(str, path))}"],
        **({"file_path": file, "access": "read"} if isinstance(file, str) and file else {}),
        **({"command": command} if isinstance(command, str) and command else {}),
    }


def _tombstone(settings: HookSettings, said: Json, text: str, handle: str) -> str:
    lines = text.count("\n") + 1
    call = f'{settings.recall}(handle="{handle}")'
    return (
        f"{OPENING} {_what(said)} moved out, about {_tokens(text)} tokens: {lines} lines are too many "
        f"for the context; head, tail and matching lines stay. To see it again: {call}; for a part "
        'add lines=[first, last] or pattern="text"]'
    )


def _what(said: Json) -> str:
    given = said.get("tool_input")
    given = given if isinstance(given, dict) else {}
    for key, words in (("command", "output of"), ("file_path", "read of"), ("pattern", "hits of")):
        if isinstance(given.get(key), str) and given[key]:
            named = " ".join(given[key].split())
            return f"{words} {named if len(named) <= 80 else f'{named[:77]}...'}"
    return f"output of {said.get('tool_name') or 'a tool'}"


def _answer(agent: str, output: Any, texts: dict[Path, str]) -> Json:
    if agent == "codex":
        # Codex has no other way to put a text in the place of an output.
        return {"decision": "block", "reason": "\n".join(texts.values())}
    new = {"hookEventName": "PostToolUse", "updatedToolOutput": with_texts(output, texts)}
    return {"hookSpecificOutput": new}


def _strings(value: Any) -> list[str]:
    values = value.values() if isinstance(value, dict) else [value]
    return [each for each in values if isinstance(each, str)]


def _tokens(text: str) -> int:
    return len(text) // 4
