"""Making room in a full window: one cover over all results decides which lines stay.

What is said by people and agents stays, and the newest exchange. Tool results leave stubs with those
of their lines that hold most of what is needed again and that nothing else in the view holds. When
what stays leaves too little room for that, the oldest groups dissolve: they leave, and a digest keeps
their handles and their best lines.
"""

from __future__ import annotations

from operator import itemgetter

from ctxgc.core.analysis import Analysis
from ctxgc.core.text import Text
from ctxgc.strategies.window_constants import WindowConstants
from ctxgc.strategies.window_cover import Cover, Passage, Pick
from ctxgc.strategies.window_digest import ENTRY_TOKENS, DigestDraft
from ctxgc.strategies.window_scene import HEAD_TOKENS, Group, Result, Scene
from ctxgc.strategies.window_writing import leave, write_stubs
from ctxgc.strategies.workbench import Workbench

HEAD_MARGIN = 14
"""By how much the first line of a stub may be longer than expected."""


class Window:
    """One collection that must make room.

    Args:
        bench: the collection.
        analysis: what roots there are and what they reach.
        how: the constants.
        digests: whether the view may tell of messages that leave.
    """

    def __init__(
        self, bench: Workbench, analysis: Analysis, how: WindowConstants, *, digests: bool
    ) -> None:
        self._bench = bench
        self._how = how
        self._scene = Scene(bench, analysis, how)
        self.digest = DigestDraft(self._scene, allowed=digests)
        self._target = self._reachable_target()
        self._results: list[Result] = []
        self._dissolved: list[Group] = []
        self._older: list[Text] = []

    def make_room(self) -> None:
        """Shrink results and dissolve groups in the draft until the target is met, or nothing helps.

        When the dead results are enough, only they shrink. Stubs of earlier collections, and their
        digest, stay as they are while there is room for the rest beside them.
        """
        if self._bench.draft.tokens <= self._target:
            return
        found = self._scene.results()
        whole = [result for result in found if not result.is_stub]
        self._results = [result for result in whole if result.passage.is_dead]
        if self._room() < 0:
            self._results = whole
            if self._room() < self._how.freeze_share * self._target:
                self._results = found
                self._older = self.digest.unfreeze()
            if self._room() < self._wanted_room():
                self._dissolve()
        self._cover()

    def ghosts(self) -> dict[str, float]:
        """Return the messages that count for more because their like was recalled, and how much."""
        found: dict[str, float] = {}
        for shown in self._scene.parts if self._scene.analysis.state.ghosts else ():
            if ghost := self._scene.ghost(shown):
                found[self._bench.history[shown.place].message_id] = round(ghost, 2)
        return found

    def _reachable_target(self) -> int:
        """The target, or more: when what must stay is large, the rest still needs some room."""
        bench, how = self._bench, self._how
        if bench.is_forced:
            return bench.target
        limit = bench.usage.get("context_limit", 0)
        must = self._scene.size(tuple(self._scene.fixed))
        some = min(must + how.work_share * bench.target, how.most_share * limit)
        little = min(must + how.least_work_share * bench.target, how.tight_share * limit)
        return max(bench.target, int(some), int(little))

    def _room(self) -> float:
        """Return the tokens that are left for lines and names."""
        leaving = sum(map(self._scene.size, self._dissolved))
        shrinking = sum(result.tokens - HEAD_TOKENS for result in self._results)
        staying = self._bench.draft.tokens - leaving - shrinking
        return self._target - staying - self.digest.reserve

    def _wanted_room(self) -> float:
        """Return the room that is worth a group; who asks for a target wants no more than that."""
        return 0.0 if self._bench.is_forced else self._how.lines_share * self._target

    def _dissolve(self) -> None:
        """Let the oldest groups dissolve until there is room enough."""
        if self.digest.is_frozen:
            self._older = self.digest.unfreeze()
        room, wanted = self._room(), self._wanted_room()
        shrinking: dict[int, int] = {}
        for result in self._results:
            place = result.shown.place
            shrinking[place] = shrinking.get(place, 0) + result.tokens - HEAD_TOKENS
        for group in self._scene.loose_groups():
            if room >= wanted:
                break
            self._dissolved.append(group)
            self.digest.add(group)
            won = self._scene.size(group) - sum(shrinking.get(place, 0) for place in group)
            room += won - ENTRY_TOKENS
        gone = self._gone()
        self._results = [result for result in self._results if result.shown.place not in gone]

    def _gone(self) -> set[int]:
        return {place for group in self._dissolved for place in group}

    def _cover(self) -> None:
        room, names = self._room(), self._how.names_share
        # What is not held by that which stays stands in these messages alone.
        changing = self._gone().union(result.shown.place for result in self._results)
        worth = self._scene.worth(self._older, changing)
        cover = Cover(self._passages(), self._held(), worth.of, worth.least_rate)
        picks = cover.choose((1 - names) * room)
        cover.list_names(names * room)
        if self._bench.is_forced:
            self._leave_whole(room)
        for group in self._dissolved:
            leave(self._scene, group)
        write_stubs(self._scene, self._results)
        self._trim(picks)

    def _leave_whole(self, room: float) -> None:
        """Leave those results whole that would win least, as long as the room suffices for them."""
        cost = {id(passage): passage.tokens for passage in self._passages()}
        room -= sum(tokens + HEAD_MARGIN for tokens in cost.values())
        small = sorted(
            [
                (result.tokens - HEAD_TOKENS - cost[id(result.passage)], *result.place, result)
                for result in self._results
                if not result.is_stub
            ],
            key=itemgetter(0, 1, 2),
        )
        whole: set[int] = set()
        for won, _, _, result in small:
            room -= won
            if room < 0:
                break
            whole.add(id(result))
        self._results = [result for result in self._results if id(result) not in whole]

    def _passages(self) -> list[Passage]:
        results = [result.passage for result in self._results]
        return results + [entry.passage for entry in self.digest.entries]

    def _held(self) -> set[str]:
        """What is held by that which stays as it is."""
        changing = {id(result.shown) for result in self._results}
        gone = self._gone()
        staying = [
            shown.text.things
            for shown in self._scene.parts
            if id(shown) not in changing and shown.place not in gone
        ]
        return set(self.digest.held()).union(*staying)

    def _trim(self, picks: list[Pick]) -> None:
        """Give up the lines chosen last, and then all names, while draft and digest are above the target."""
        while (over := self._over()) > 0 and picks:
            changed: set[int] = set()
            while picks and over > 0:
                pick = picks.pop()
                pick.passage.kept.remove(pick.piece)
                over -= pick.tokens
                changed.add(id(pick.passage))
            self._rewrite(changed)
        named = {id(passage) for passage in self._passages() if passage.names}
        if named and self._over() > 0:
            for passage in self._passages():
                passage.names = []
            self._rewrite(named)

    def _rewrite(self, passages: set[int]) -> None:
        places = {r.shown.place for r in self._results if id(r.passage) in passages}
        write_stubs(self._scene, [r for r in self._results if r.shown.place in places])

    def _over(self) -> float:
        return self._bench.draft.tokens + self.digest.tokens - self._target
