"""Stubs in a history: the text that stays of a tool result."""

from __future__ import annotations

from ctxgc.core.analysis import Analysis
from ctxgc.core.evacuate import Evacuation, evacuate
from ctxgc.core.message import Message
from ctxgc.core.secrets import mask_secrets
from ctxgc.core.segment import ContextSegment
from ctxgc.core.tombstone import is_tombstone, tombstone
from ctxgc.errors import MessageError
from ctxgc.strategies.workbench import Workbench
from ctxgc.wire import replace_text

MIN_SAVING = 0.30
NAMES_AT = (1.0, 0.25, 0.0)
LEVELS = range(len(NAMES_AT))


class Stubs:
    """Makes tool results smaller, one after the other, in the order in which they may leave."""

    def __init__(self, bench: Workbench, analysis: Analysis) -> None:
        self._bench = bench
        self._analysis = analysis
        self._leaving: set[str] = set()
        self._places = {
            segment_id: (message.message_id, place)
            for message in bench.history
            for place, segment_id in enumerate(bench.host.segment_ids(message.message_id))
        }

    def can_shrink(self, segment: ContextSegment) -> bool:
        """Tell whether a segment is a tool result worth a tombstone that may be touched."""
        return (
            segment.part == "tool_result"
            and (segment.tokens or 0) >= self._bench.config.evacuate_min_tokens
            and segment.segment_id in self._places
            and self._places[segment.segment_id][0] not in self._bench.untouchable
            and not is_tombstone(segment.text)
        )

    def shrink(self, segment: ContextSegment, level: int) -> None:
        """Put a tombstone in a result's place: with live lines and names, fewer names, or bare."""
        message_id, place = self._places[segment.segment_id]
        message = self._bench.draft.get(message_id)
        if message is None:
            return
        edited = self._edited(message, place, segment, level)
        saving = self._bench.draft.size(message_id) - self._bench.host.message_tokens(edited)
        if saving >= (1 if level else MIN_SAVING * (segment.tokens or 0)):
            self._leaving.add(segment.segment_id)
            reachable = self._analysis.is_reachable(segment.segment_id)
            self._bench.draft.replace(edited, "evacuated" if reachable else "stashed")

    def _edited(self, message: Message, place: int, segment: ContextSegment, level: int) -> Message:
        host = self._bench.host
        found = self._evacuation(segment, level)
        text = tombstone(
            segment,
            self._why(segment),
            handle=host.handle(segment.segment_id) if host.recall_call else "",
            recall=host.recall_call or "",
            names=found.names,
            kept=found.kept,
        )
        if self._bench.config.secrets == "mask":
            text = mask_secrets(text)
        try:
            return replace_text(message, place, text, keep_media=False)
        except MessageError:
            return message

    def _evacuation(self, segment: ContextSegment, level: int) -> Evacuation:
        config = self._bench.config
        with_lines = level == 0 and self._analysis.is_reachable(segment.segment_id)
        line_share = config.evacuate_keep_percent / 100 if with_lines else 0.0
        name_share = config.tombstone_names_percent / 100 * NAMES_AT[level]
        if not line_share and not name_share:
            return Evacuation("", ())
        mentions = self._analysis.state.heap.mentions
        names = mentions.going(segment.segment_id, segment.text, self._leaving)
        return evacuate(segment.text, names, line_share=line_share, name_share=name_share)

    def _why(self, segment: ContextSegment) -> str:
        if segment.superseded_by is not None:
            return f"superseded, {segment.superseded_how}"
        if self._analysis.is_reachable(segment.segment_id):
            return "cold"
        return "nothing refers to it"
