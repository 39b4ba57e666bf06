"""What the dashboard shows of sessions, as JSON-ready data: rows, timelines, segments, plans."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ctxgc._version import __version__
from ctxgc.dashboard.report import report_page, timeline_page
from ctxgc.errors import InputError
from ctxgc.insight import (
    ListedSession,
    SegmentDetail,
    SessionList,
    SessionTimeline,
    analyze_transcript,
    open_transcript,
    recorded_detail,
    recorded_next,
    recorded_tokens,
    stored_detail,
    stored_next,
    stored_tokens,
    timeline_of,
    timeline_of_stored,
)
from ctxgc.session import CheckpointStore, Store, masked_data, utc_now

_Data = TypeVar("_Data", str, dict[str, Any])

_MOST_TIMELINES = 8
_MOST_TARGET = 100_000_000

STORED_ACTIONS = (
    "pin", "unpin", "recall", "stash", "delete", "collect", "undo", "checkpoint", "restore", "policy",
    "export",
)  # fmt: skip
RECORDED_ACTIONS = ("continue_from",)


class DashboardSessions:
    """The sessions of a dashboard: the recorded ones of this machine, and those of a store.

    Args:
        store: whose sessions are shown; None for recorded ones alone.
        show_secrets: whether likely keys are shown as they are.
        clock: gives the present time.
    """

    def __init__(
        self,
        store: Store | None = None,
        *,
        show_secrets: bool = False,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self.store = store
        self.clock = clock
        self._show_secrets = show_secrets
        self._index = SessionList(store)
        self._timelines: OrderedDict[str, tuple[Any, SessionTimeline, bytes]] = OrderedDict()

    # -- answers ------------------------------------------------------------------------------------

    def listed(self) -> dict[str, Any]:
        """Return all sessions, and the trends of the recorded ones."""
        rows = self._index.rows(self.clock())
        return self.shown(
            {
                "sessions": [msgspec.to_builtins(row) for row in rows],
                "trends": msgspec.to_builtins(self._index.trends()),
                "version": __version__,
            }
        )

    def row(self, row_id: str) -> ListedSession:
        """Return the row of a session.

        Raises:
            InputError: there is no such session.
        """
        return self._index.row(row_id, self.clock())

    def described(self, row_id: str) -> dict[str, Any]:
        """Return what ate the tokens of a session, its checkpoints, and what can be done to it."""
        row = self.row(row_id)
        if row.kind == "stored":
            tokens = stored_tokens(self.opened(), row.session_id)
            checkpoints, actions = self._checkpoints(row), list(STORED_ACTIONS)
        else:
            path, requests = self.path_of(row), self._index.requests_of(row)
            tokens = recorded_tokens(open_transcript(path), requests)
            marks = [mark for each in self.timeline(row).requests for mark in each.marks]
            checkpoints = []
            actions = [*RECORDED_ACTIONS] if "compaction" in marks else []
        return self.shown(
            {
                "row": msgspec.to_builtins(row),
                **msgspec.to_builtins(tokens),
                "checkpoints": checkpoints,
                "actions": actions,
            }
        )

    def timeline_json(self, row_id: str) -> bytes:
        """Return the timeline of a session as JSON."""
        row = self.row(row_id)
        self.timeline(row)
        return self._timelines[row.id][2]

    def report(self, row_id: str) -> str:
        """Return a session as a page of its own, which needs no server."""
        row, timeline = self.row(row_id), self.timeline_json(row_id)
        if row.kind == "recorded" and row.parent is None:
            return report_page(analyze_transcript(open_transcript(self.path_of(row))), timeline)
        subtitle = " · ".join(filter(None, (row.agent, row.model, row.project)))
        return timeline_page(row.title, subtitle, timeline)

    def detail(self, row_id: str, segment: str) -> dict[str, Any]:
        """Return one segment of a session.

        Raises:
            CtxgcError: there is no such session or segment.
        """
        row = self.row(row_id)
        known = {each.id: each for each in self.timeline(row).segments}
        if segment not in known:
            raise InputError(
                f"there is no segment '{segment}'", hint="the timeline lists them", field="segment"
            )
        found = self._detail(row, segment, known[segment].label)
        return self.shown(
            {"seg": msgspec.to_builtins(known[segment]), **msgspec.to_builtins(found)}
        )

    def plan(self, row_id: str, target: str | None) -> dict[str, Any]:
        """Return what the next collection of a session would do.

        Raises:
            CtxgcError: there is no such session, the target is none, or it cannot be collected.
        """
        row, tokens = self.row(row_id), checked_tokens(target)
        if row.kind == "stored":
            found = stored_next(self.opened(), row.session_id, self.clock(), tokens)
        else:
            found = recorded_next(self.path_of(row), tokens)
        return self.shown(msgspec.to_builtins(found))

    def shown(self, data: _Data) -> _Data:
        """Return data as the dashboard shows it: without likely keys, unless that was asked for."""
        made: _Data = data if self._show_secrets else masked_data(data)
        return made

    # -- where a session is -------------------------------------------------------------------------

    def opened(self) -> Store:
        """Return the store.

        Raises:
            InputError: there is none.
        """
        if self.store is None:
            raise InputError("there is no store", hint="name one with --store", field="store")
        return self.store

    def path_of(self, row: ListedSession) -> Path:
        """Return the file of a recorded session."""
        return self._index.file_of(row.id)

    # -- parts --------------------------------------------------------------------------------------

    def timeline(self, row: ListedSession) -> SessionTimeline:
        """Return the timeline of a session; it is made again only once the session has changed."""
        state = self._state(row)
        known = self._timelines.get(row.id)
        if known is None or known[0] != state:
            if row.kind == "stored":
                made = timeline_of_stored(self.opened(), row.session_id)
            else:
                made = timeline_of(open_transcript(self.path_of(row)))
            said = {"row": msgspec.to_builtins(row), **msgspec.to_builtins(made)}
            known = (state, made, msgspec.json.encode(self.shown(said)))
            self._timelines[row.id] = known
        self._timelines.move_to_end(row.id)
        while len(self._timelines) > _MOST_TIMELINES:
            self._timelines.popitem(last=False)
        return known[1]

    def _state(self, row: ListedSession) -> tuple[int, float]:
        """Return what is another once a session has changed."""
        if row.kind == "stored":
            return self.opened().revision(row.session_id), 0.0
        about = self.path_of(row).stat()
        return about.st_size, about.st_mtime

    def _detail(self, row: ListedSession, segment: str, label: str) -> SegmentDetail:
        if row.kind == "stored" and ":" not in segment:
            return stored_detail(self.opened(), row.session_id, segment)
        if row.kind == "recorded" and segment != "beside":
            return recorded_detail(open_transcript(self.path_of(row)), segment)
        return SegmentDetail(
            text=f"{label}: sent with each request; its text is not kept.",
            reasons=[], chain=[], superseded_by=[], copies=[],
        )  # fmt: skip

    def _checkpoints(self, row: ListedSession) -> list[dict[str, Any]]:
        requests = [each for each in self.timeline(row).requests if each.at is not None]
        return [
            {
                "id": info.checkpoint_id,
                "label": info.label,
                "at": info.timestamp.isoformat(),
                "request": sum(1 for each in requests if each.at and each.at < info.timestamp) + 1,
            }
            for info in CheckpointStore(self.opened(), row.session_id).list()
        ]


def checked_tokens(target: object) -> int | None:
    """Return a number of tokens that a collection can aim at; None for its own target.

    Raises:
        InputError: it is no such number.
    """
    if target is None or target == "":
        return None
    if isinstance(target, str) and target.isascii() and target.isdigit():
        target = int(target)
    if isinstance(target, int) and not isinstance(target, bool) and 0 <= target <= _MOST_TARGET:
        return target
    raise InputError(
        f"the target cannot be {target!r}", hint="give a number of tokens", field="target"
    )
