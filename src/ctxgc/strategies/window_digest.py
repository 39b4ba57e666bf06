"""The digest of a collection: the one that stands in the view, and the one that follows it."""

from __future__ import annotations

from ctxgc.core.secrets import mask_secrets
from ctxgc.core.text import Text
from ctxgc.strategies.digest import Entry, digest_of, handles_in, read_digest, write_digest
from ctxgc.strategies.window_scene import Group, Scene
from ctxgc.strategies.workbench import OLD_NOTICE

ENTRY_TOKENS = 8
NOTE_TOKENS = 32


class DigestDraft:
    """A digest in the making. As long as it is frozen, the old one stays as it is."""

    def __init__(self, scene: Scene, *, allowed: bool) -> None:
        self.entries: list[Entry] = []
        self.is_frozen = True
        self._scene = scene
        self._bench = scene.bench
        self._allowed = allowed and scene.bench.host.recall_call is not None
        self._notices = [m for m in scene.bench.old_notices() if handles_in(m.text())]

    @property
    def reserve(self) -> int:
        """The tokens to set aside for the new digest, beyond those of the old one that it replaces."""
        if self.is_frozen:
            return 0
        note = NOTE_TOKENS if self.entries else 0
        return note + ENTRY_TOKENS * len(self.entries) - self._old_tokens()

    @property
    def tokens(self) -> int:
        """The tokens that the digest, as it is now, adds to the draft."""
        text = self._text()
        if text == self._old_text():
            return 0
        return self._bench.host.counter.count(text) + NOTE_TOKENS - self._old_tokens()

    def unfreeze(self) -> list[Text]:
        """Let the lines of the old digest compete for the room, and return them."""
        self.is_frozen = False
        self.entries = self._old_entries()
        return [entry.passage.text for entry in self.entries]

    def add(self, group: Group) -> None:
        """Take up a group that leaves."""
        handle = self._scene.handle(group)
        if handle is not None and self._allowed:
            self.entries.append(Entry(handle, self._scene.group_text(group)))

    def held(self) -> frozenset[str]:
        """Return what the old digest holds, while it stays as it is."""
        texts = [Text(m.text()).things for m in self._notices] if self.is_frozen else []
        return frozenset[str]().union(*texts)

    def close(self) -> str:
        """Return the digest of all that left the draft; empty when the old one, or none, says it all."""
        draft, text = self._bench.draft, self._text()
        stays = all(draft.get(m.message_id) is not None for m in self._notices)
        if (stays and text == self._old_text()) or self.tokens >= draft.freed:
            return ""
        draft.remove_all([m.message_id for m in self._notices], OLD_NOTICE)
        return text

    def _text(self) -> str:
        entries = self._kept_entries() if self.is_frozen else self.entries
        told = {entry.handle for entry in entries}
        fresh = [handle for handle in self._left() if handle not in told]
        if not self._allowed or (self.is_frozen and not fresh):
            return self._old_text()
        text = write_digest([*entries, *map(Entry, fresh)])
        return mask_secrets(text) if self._bench.config.secrets == "mask" else text

    def _left(self) -> list[str]:
        """The handles of all groups that left the draft."""
        bench = self._bench
        if not bench.draft.has_removed:
            return []
        gone = [g for g in bench.groups if bench.draft.get(bench.ids(g)[0]) is None]
        return [handle for handle in map(self._scene.handle, gone) if handle is not None]

    def _old_entries(self) -> list[Entry]:
        """The entries of the digest in the view, but those that are back or deleted."""
        if not self._allowed:
            return []
        heap = self._scene.analysis.state.heap
        found = {e.handle: e for m in self._notices for e in read_digest(m.text())}
        known = [(heap.peek(handle), entry) for handle, entry in found.items()]
        return [entry for segment, entry in known if segment and segment.tier != "working"]

    def _kept_entries(self) -> list[Entry]:
        entries = self._old_entries()
        for entry in entries:
            entry.keep_all()
        return entries

    def _old_text(self) -> str:
        return "\n".join(digest_of(message.text()) for message in self._notices)

    def _old_tokens(self) -> int:
        return sum(self._bench.draft.size(message.message_id) for message in self._notices)
