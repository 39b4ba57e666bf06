"""Writing what a window collection decided into the draft: stubs for results, nothing for groups."""

from __future__ import annotations

from collections.abc import Iterable

from ctxgc.core.message import Message
from ctxgc.core.secrets import mask_secrets
from ctxgc.core.segment import ContextSegment
from ctxgc.errors import MessageError
from ctxgc.strategies.stubs import stub
from ctxgc.strategies.window_scene import Group, Result, Scene
from ctxgc.wire import replace_text


def leave(scene: Scene, group: Group) -> None:
    """Take a group out of the draft."""
    ids = scene.bench.ids(group)
    segments = [s for message_id in ids for s in scene.bench.host.segment_ids(message_id)]
    reachable = any(map(scene.analysis.is_reachable, segments))
    scene.bench.draft.remove_all(ids, "low_score" if reachable else "unreachable")


def write_stubs(scene: Scene, results: Iterable[Result]) -> None:
    """Put stubs into the draft where that makes messages smaller; all results of a message come together."""
    by_place: dict[int, list[Result]] = {}
    for result in results:
        by_place.setdefault(result.shown.place, []).append(result)
    draft = scene.bench.draft
    for place, together in by_place.items():
        edited = scene.bench.history[place]
        for result in together:
            edited = _with_stub(scene, edited, result)
        if scene.bench.host.message_tokens(edited) < draft.size(edited.message_id):
            reachable = scene.analysis.is_reachable(together[0].shown.segment.segment_id)
            draft.replace(edited, "evacuated" if reachable else "stashed")


def _with_stub(scene: Scene, message: Message, result: Result) -> Message:
    passage, host = result.passage, scene.bench.host
    original = _original(scene, result.shown.segment)
    text = stub(original, _why(original), host, names=passage.names, kept=passage.excerpt())
    if scene.bench.config.secrets == "mask":
        text = mask_secrets(text)
    most = min(scene.how.keep_whole * result.tokens, result.tokens - scene.how.least_saving)
    if host.counter.count(text) > most:
        return message
    try:
        return replace_text(message, result.shown.number, text, keep_media=False)
    except MessageError:
        return message


def _original(scene: Scene, segment: ContextSegment) -> ContextSegment:
    original = scene.analysis.state.heap.peek(segment.derived_from or "")
    return segment if original is None else original


def _why(segment: ContextSegment) -> str:
    if segment.superseded_by is not None:
        return f"superseded, {segment.superseded_how}"
    return "cold"
