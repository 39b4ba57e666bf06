"""The demo's session as a file of messages, and the page of `ctxgc analyze` about it."""

from __future__ import annotations

import importlib
import logging
from pathlib import Path

import msgspec

from ctxgc.demo.story import messages
from ctxgc.insight import analyze_transcript
from ctxgc.stores.files import write_atomic
from ctxgc.wire.transcripts import open_transcript

SESSION = "session.jsonl"
PAGE = "report.html"


def write_report(folder: Path, segments: int = 1_000, seed: int = 7) -> Path:
    """Write the session and its page to a folder, which is made if it is missing; return the page.

    The same session gives the same bytes. Raises OSError where the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    session, page = folder / SESSION, folder / PAGE
    write_atomic(session, msgspec.json.Encoder().encode_lines(messages(segments, seed)))
    write_atomic(page, _page(session).encode())
    return page


def _page(session: Path) -> str:
    # By name: the command line is a room beside this one, not below it.
    drawer = importlib.import_module("ctxgc.cli.analyze_page")
    logging.getLogger("ctxgc").addHandler(logging.NullHandler())  # the replay is no one's session
    drawn: str = drawer.report_page(analyze_transcript(open_transcript(session)))
    return drawn
