"""A session made of numbers, for the tests of recovery."""

from __future__ import annotations

from dataclasses import dataclass, field

from ctxgc.errors import StoreError
from ctxgc.guard import FixedPart, Outlook

AS_ASKED = -1


@dataclass
class Scripted:
    """Does what its fields say, and writes down what it was asked for.

    `fails` names the methods that answer no, `raises` those that raise a typed error. `pruned_to`,
    `minimum`, `loaded` and `aggressive_to` are the sizes after each; None leaves the size alone, and
    AS_ASKED goes as near to the target as what must stay allows.
    """

    now: int
    limit: int = 100
    must_stay: int = 20
    pruned_to: int | None = AS_ASKED
    minimum: int | None = 30
    stored_minimum: int | None = 25
    loaded: int | None = 96
    aggressive_to: int | None = 20
    fails: frozenset[str] = frozenset()
    raises: frozenset[str] = frozenset()
    asked: list[str] = field(default_factory=list)

    def _do(self, name: str, size: int | None = None) -> bool:
        self.asked.append(name)
        if name in self.raises:
            raise StoreError(f"{name} failed")
        if name in self.fails:
            return False
        self.now = self.now if size is None else size
        return True

    def size(self) -> int:
        return self.now

    def checkpoint(self, *, emergency: bool) -> bool:
        return self._do("emergency" if emergency else "checkpoint")

    def plan(self, target: int) -> Outlook:
        self._do("plan")
        return Outlook(must_stay=self.must_stay, prunable=max(0, self.now - self.must_stay))

    def prune(self, target: int) -> bool:
        nearest = min(self.now, max(target, self.must_stay))
        return self._do("prune", nearest if self.pruned_to == AS_ASKED else self.pruned_to)

    def validate(self) -> bool:
        return self._do("validate")

    def minimal(self) -> bool:
        return self._do("minimal", self.minimum)

    def checkpoint_minimum(self) -> int | None:
        self._do("look")
        return self.stored_minimum

    def load_last_checkpoint(self) -> bool:
        return self._do("load", self.loaded)

    def aggressive(self) -> bool:
        return self._do("aggressive", self.aggressive_to)

    def resume(self) -> None:
        self._do("resume")

    def parts(self) -> list[FixedPart]:
        return [FixedPart("last turn", 5), FixedPart("system prompt", self.must_stay)]
