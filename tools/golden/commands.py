"""Goldens of the command line: its help, the lab, `analyze` and `prune`."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

from ctxgc.stores import Put, open_store
from tools.golden.book import GoldenBook
from tools.golden.places import ctxgc, ctxgc_each, placed

_VOLATILE = {"version": "<version>", "age": "<age>"}
REGIMES = ("cost", "window:50%", "window:25%")
_LAB = ("--policy", "ours,base,oracle", "--every", "11", "--limit-runs", "4")
_SECRET = "00112233445566778899aabbccddeeff"  # noqa: S105 - of goldens only
_LOOKS = (
    "stash list", "stash list --session golden", "stash search parse", "search harvest",
    "show s-13 --why", "show s-8 --lines 2-4", "show s-165", "checkpoint list", "checkpoint verify",
    "checkpoint show 20260302T0907", "diff checkpoint:20260302T0907 session:golden",
    "stash gc --older-than 1d",
)  # fmt: skip
_ROW = re.compile(r"^  ([a-z][a-z-]*)(?:  |$)")

TRANSCRIPTS = {
    "claude-code": "claude-code.jsonl",
    "codex": "codex.jsonl",
    "demo": "session.jsonl",  # as the demo wrote it when the goldens were made
}


def add_to(book: GoldenBook) -> None:
    """Add the goldens of the command line."""
    book.add("help.txt", _help)
    for regime in REGIMES:
        name = regime.replace(":", "-").replace("%", "")
        book.add(f"lab-{name}.json", partial(_lab, regime))
    for name, file in TRANSCRIPTS.items():
        book.add(f"analyze-{name}.json", partial(_analyze, file))
        book.add(f"prune-{name}.json", partial(_prune, file, "balanced"))
        book.add(f"prune-tight-{name}.jsonl", partial(_pruned_file, file, "tight"))
    book.add("look.json", _look)
    book.add("config.json", _config)
    book.add("demo.txt", lambda folder: ctxgc(folder, "demo"))


# -- help -----------------------------------------------------------------------------------------


def _help(folder: Path) -> str:
    """Return the help of all commands, each followed by those below it."""
    found: dict[tuple[str, ...], str] = {}
    level: list[tuple[str, ...]] = [()]
    while level:
        said = ctxgc_each(folder, [(*path, "--help") for path in level])
        found.update(zip(level, said, strict=True))
        level = [(*path, name) for path in level for name in _below(found[path])]
    return "\n".join(
        f"$ {' '.join(('ctxgc', *path, '--help'))}\n\n{found[path]}" for path in sorted(found)
    )


def _below(said: str) -> list[str]:
    """Return the names of the commands that a help lists."""
    _, _, listing = said.partition("\nCommands:\n")
    rows = map(_ROW.match, listing.split("\n\n")[0].splitlines())
    return [row[1] for row in rows if row is not None]


# -- the lab --------------------------------------------------------------------------------------


def _lab(regime: str, folder: Path) -> str:
    ctxgc(folder, "lab", "run", "--demo", *_LAB, "--regime", regime, "--json", "lab.json", "-q")
    report: dict[str, Any] = json.loads((folder / "lab.json").read_text(encoding="utf-8"))
    return _written(report)


# -- analyze and prune ----------------------------------------------------------------------------


def _analyze(file: str, folder: Path) -> str:
    placed(folder, file)
    return ctxgc(folder, "analyze", file, "--json")


_RECALLED = ("--store", "json:stash.json", "--recall", "mcp__ctxgc__context_recall")
"""As if the agent had our server on this store."""


def _prune(file: str, preset: str, folder: Path) -> str:
    """Return what a dry run says, and what the run itself says."""
    session_id = _seed(folder, file)
    common = ("prune", file, "--preset", preset, "--json", *_RECALLED)
    dry = json.loads(ctxgc(folder, *common, codes=(0, 1)))
    wet = json.loads(ctxgc(folder, *common, "-o", "pruned.jsonl", codes=(0, 1)))
    found = ctxgc(folder, "search", "tests", "--store", "json:stash.json", "--json", codes=(0, 1))
    answers = _written({"dry": dry, "wet": wet, "found": json.loads(found)})
    return _without(answers, {session_id: "<session>", **_new_id(wet)})


def _pruned_file(file: str, preset: str, folder: Path) -> str:
    """Return the bytes of the pruned session."""
    _seed(folder, file)
    common = ("prune", file, "--preset", preset, "--json", *_RECALLED)
    wet = json.loads(ctxgc(folder, *common, "-o", "pruned.jsonl", codes=(0, 1)))
    return _without((folder / "pruned.jsonl").read_bytes().decode(), _new_id(wet))


def _seed(folder: Path, file: str) -> str:
    """Give the stash its secret, so that handles, and thereby their tokens, are the same each time."""
    placed(folder, file)
    dry = json.loads(ctxgc(folder, "prune", file, "--json", *_RECALLED, codes=(0, 1)))
    session_id = str(dry["session_id"])
    store = open_store(f"json:{folder / 'stash.json'}")
    try:
        store.commit(session_id, [Put("state", "session", {"secret": _SECRET})])
    finally:
        store.close()
    return session_id


def _new_id(answer: dict[str, Any]) -> dict[str, str]:
    """Return the id that the pruned session was given by chance, with its placeholder."""
    new = (answer["written"] or {}).get("session_id")
    return {} if new is None else {new: "<new session>"}


def _without(text: str, names: dict[str, str]) -> str:
    for name, placeholder in names.items():
        text = text.replace(name, placeholder)
    return text


def _written(value: Any) -> str:
    """Return JSON without what the next release or another day changes."""
    return json.dumps(_pinned(value), indent=1, ensure_ascii=False) + "\n"


def _pinned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _VOLATILE.get(key) or _pinned(each) for key, each in value.items()}
    return [_pinned(each) for each in value] if isinstance(value, list) else value


# -- looking at what is stored --------------------------------------------------------------------


def _look(folder: Path) -> str:
    """Look at a stored session with all commands that read stores."""
    placed(folder, "stored.json")
    store = ("--store", "json:stored.json", "--json")
    calls = [(*look.split(), *store) for look in _LOOKS]
    answers = ctxgc_each(folder, calls, codes=(0, 1))
    found = {look: json.loads(said) for look, said in zip(_LOOKS, answers, strict=True)}
    checked = ctxgc(folder, "doctor", "json:stored.json", "--json")
    return _written(found | {"doctor": json.loads(checked)})


def _config(folder: Path) -> str:
    """Return the schema of configurations, and the one in force where nobody says anything."""
    schema = json.loads(ctxgc(folder, "config", "schema"))
    return _written(
        {"schema": schema, "show": json.loads(ctxgc(folder, "config", "show", "--json"))}
    )
