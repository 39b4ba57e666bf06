"""What the guard watches: the zone of the context, thrashing, and when a checkpoint is due.

A zone is entered at its start and left `zone_leave_points` below it. An alert is sent once on the way
up and armed again when its zone is left; on the way down there are none.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import msgspec
from msgspec.structs import replace

from ctxgc.config import GCConfig
from ctxgc.core import checked_time, utc_now
from ctxgc.errors import InputError

# -- Zones: safe, warning, danger, critical


class Zone(StrEnum):
    """How full the context is."""

    SAFE = "safe"
    WARNING = "warning"
    DANGER = "danger"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """The place of the zone in the order from safe (0) to critical (3)."""
        return _ORDER.index(self)


_ORDER = tuple(Zone)


def zone_of(percent: float, config: GCConfig) -> Zone:
    """Return the zone that a share of the context window lies in."""
    if percent >= config.critical_percent:
        return Zone.CRITICAL
    if percent >= config.danger_percent:
        return Zone.DANGER
    return Zone.WARNING if percent >= config.warning_percent else Zone.SAFE


def next_zone(current: Zone, percent: float, config: GCConfig) -> Zone:
    """Return the zone after `current`: entered at its start, left `zone_leave_points` below it."""
    entered = zone_of(percent, config)
    if entered.rank >= current.rank:
        return entered
    held = zone_of(percent + config.zone_leave_points, config)
    return min(current, held, key=lambda zone: zone.rank)


def percent_of(context_size: int, context_limit: int) -> float:
    """Return a size as percent of the limit, exact where the limit itself is meant.

    Raises:
        InputError: the size is below zero, or the limit not above it.
    """
    if context_limit <= 0:
        raise InputError(
            f"context_limit cannot be {context_limit}",
            hint="give the size of the model's window in tokens",
            field="context_limit",
        )
    if context_size < 0:
        raise InputError(
            f"context_size cannot be {context_size}", hint="zero or more", field="context_size"
        )
    return context_size * 100 / context_limit


_RECOMMENDATIONS: dict[str, str] = {
    "WARNING": "Consider pruning non-essential context soon",
    "DANGER": "Prepare checkpoint and pruning strategy",
    "CRITICAL": "Immediate action required - create checkpoint and prune",
}
_GENERAL_RECOMMENDATION = "Monitor context size"

_log = logging.getLogger("ctxgc")


class _Record(dict[str, Any]):
    """A dict as S4 writes it, whose keys are attributes too, with the zone as one more attribute."""

    def __init__(self, zone: Zone, **values: Any) -> None:
        super().__init__(**values)
        self.zone = zone

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def to_dict(self) -> dict[str, Any]:
        """Return the record as JSON values, with the zone."""
        return {**msgspec.to_builtins(dict(self)), "zone": self.zone.value}


class Alert(_Record):
    """The news that the context entered a fuller zone: `type`, `level`, `ratio`, `recommendation`."""


class Reading(_Record):
    """One look at the context: `timestamp`, `size` in tokens, and `ratio`, the share of the limit."""


AlertCallback = Callable[[Alert], object]


class ContextMonitor:
    """Watches the size of a context.

    Args:
        config: where the zones start and how far below they are left.
        on_alert: called with every alert; one that raises is logged and does no harm.
        history_limit: how many readings are remembered.
        zone: the zone to start in, so that a restarted process does not repeat an alert.
        clock: gives the present time, for tests and replays.
    """

    def __init__(
        self,
        config: GCConfig | None = None,
        on_alert: AlertCallback | None = None,
        history_limit: int = 1000,
        *,
        zone: Zone = Zone.SAFE,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        if history_limit < 0:
            raise InputError(
                f"history_limit cannot be {history_limit}",
                hint="zero or more",
                field="history_limit",
            )
        self.config = config if config is not None else GCConfig()
        self.zone = zone
        self.warnings_sent: list[str] = []
        self._readings: deque[Reading] = deque(maxlen=history_limit)
        self._callbacks: list[AlertCallback] = [] if on_alert is None else [on_alert]
        self._clock = clock

    @property
    def history(self) -> list[Reading]:
        """The latest readings, oldest first."""
        return list(self._readings)

    def subscribe(self, callback: AlertCallback) -> Callable[[], None]:
        """Call back for every alert from now on; return what ends that."""
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback) if callback in self._callbacks else None

    def check_and_alert(self, context_size: int, context_limit: int) -> Alert | None:
        """Take a reading, and return and send an alert if a fuller zone was entered by it.

        Raises:
            InputError: the size is below zero, or the limit not above it; nothing was recorded.
        """
        percent = percent_of(context_size, context_limit)
        before, self.zone = self.zone, next_zone(self.zone, percent, self.config)
        ratio = context_size / context_limit
        self._readings.append(
            Reading(self.zone, timestamp=self._clock(), size=context_size, ratio=ratio)
        )
        self._arm_again()
        if self.zone.rank <= before.rank:
            return None
        self.warnings_sent.append(self.zone.value)
        return self.send_alert(self.zone.upper(), ratio)

    def send_alert(self, level: str, ratio: float) -> Alert:
        """Send an alert to all listeners, and return it."""
        alert = Alert(
            self.zone, type="CONTEXT_SIZE_ALERT", level=level, ratio=ratio,
            recommendation=self.get_recommendation(level),
        )  # fmt: skip
        for callback in tuple(self._callbacks):
            try:
                callback(alert)
            except Exception:  # noqa: BLE001 - a callback may raise anything
                _log.exception("a callback for context alerts raised")
        return alert

    def get_recommendation(self, level: str) -> str:
        """Return what to do at a level, in any case of letters; a general word for unknown ones."""
        return _RECOMMENDATIONS.get(level.upper(), _GENERAL_RECOMMENDATION)

    def _arm_again(self) -> None:
        self.warnings_sent = [
            name for name in self.warnings_sent if Zone(name).rank <= self.zone.rank
        ]


# -- When to make a checkpoint: five triggers, each with its name


CONTEXT_SIZE = "context_size_threshold"
PHASE = "phase_transition"
MILESTONE = "task_milestone"
RISK = "risky_operation"
TIME = "time_interval"
TRIGGERS: tuple[str, ...] = (CONTEXT_SIZE, PHASE, MILESTONE, RISK, TIME)

RISKY_OPERATIONS: frozenset[str] = frozenset({"major_refactor", "large_merge"})


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far the work has come.

    `tasks_seen` is how many tasks were complete at the last look; None says that the last of
    `tasks_completed` was completed just now.
    """

    phase_changed: bool = False
    tasks_completed: int = 0
    tasks_seen: int | None = None
    next_operation: str | None = None

    def __post_init__(self) -> None:
        for field in ("tasks_completed", "tasks_seen"):
            value = getattr(self, field)
            if value is not None and value < 0:
                raise InputError(f"{field} cannot be {value}", hint="zero or more", field=field)

    @classmethod
    def of(cls, context: Any) -> Progress:
        """Return what any object, or dict, with fields of these names says."""
        if isinstance(context, cls):
            return context
        names = cls.__struct_fields__
        if isinstance(context, Mapping):
            return cls(**{name: context[name] for name in names if name in context})
        return cls(**{name: getattr(context, name) for name in names if hasattr(context, name)})


class ContextMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """The size of the context and of the window, in tokens."""

    context_size: int
    context_limit: int

    @property
    def percent(self) -> float:
        """The share of the window that is used."""
        return percent_of(self.context_size, self.context_limit)


def should_create_checkpoint(
    context: Any,
    metrics: Any,
    now: datetime | None = None,
    last: datetime | None = None,
    *,
    config: GCConfig | None = None,
    risky_operations: Collection[str] = RISKY_OPERATIONS,
) -> tuple[bool, list[str]]:
    """Return whether to make a checkpoint now, and the names of all triggers that say so.

    Args:
        context: a `Progress`, or any object or dict with fields of its names.
        metrics: a `ContextMetrics`, or any object with `context_size` and `context_limit`.
        now: the present time.
        last: the time of the last checkpoint; without one no interval has passed.
        config: the marks and intervals.
        risky_operations: the operations before which a checkpoint is made.
    """
    config = config if config is not None else GCConfig()
    progress = Progress.of(context)
    percent = percent_of(metrics.context_size, metrics.context_limit)
    reasons = {
        CONTEXT_SIZE: percent > config.checkpoint_percent,
        PHASE: progress.phase_changed,
        MILESTONE: _passed_milestone(progress, config.checkpoint_every_tasks),
        RISK: progress.next_operation in risky_operations,
        TIME: _waited(now or utc_now(), last) > config.checkpoint_interval_seconds,
    }
    names = [name for name in TRIGGERS if reasons[name]]
    return bool(names), names


def _passed_milestone(progress: Progress, every: int) -> bool:
    done = progress.tasks_completed
    seen = max(0, done - 1) if progress.tasks_seen is None else progress.tasks_seen
    return done // every > seen // every


def _waited(now: datetime, last: datetime | None) -> float:
    if last is None:
        return 0.0
    return (checked_time("now", now) - checked_time("last", last)).total_seconds()


class TriggersSeen(msgspec.Struct, frozen=True, kw_only=True):
    """What the triggers saw of a session so far; it is stored with the session."""

    last: datetime | None = None
    """When the last checkpoint was made, or the session began."""
    due: frozenset[str] = frozenset()
    is_above: bool = False
    phase: str | None = None
    task: str | None = None
    tasks: int = 0
    operation: str | None = None


class CheckpointTriggers:
    """Watches a session and says when a checkpoint is due.

    Args:
        config: the marks and intervals.
        risky_operations: the operations before which a checkpoint is made.
        clock: gives the present time.
        seen: what was seen before; without it the first interval starts when this object is made.
    """

    def __init__(
        self,
        config: GCConfig | None = None,
        *,
        risky_operations: Collection[str] = RISKY_OPERATIONS,
        clock: Callable[[], datetime] = utc_now,
        seen: TriggersSeen | None = None,
    ) -> None:
        self.config = config if config is not None else GCConfig()
        self.risky_operations = frozenset(risky_operations)
        self._clock = clock
        self.seen = TriggersSeen() if seen is None else seen
        if self.seen.last is None:
            self.seen = replace(self.seen, last=_utc(clock()))

    def check(
        self,
        metrics: ContextMetrics,
        *,
        phase: str | None = None,
        phase_changed: bool = False,
        tasks_completed: int | None = None,
        next_operation: str | None = None,
        task: str | None = None,
    ) -> tuple[bool, list[str]]:
        """Return whether a checkpoint is due, and all its triggers since the last one.

        What is left out has not changed; a risky operation counts once each time it is announced. Another
        task is a phase, and one more that is done with; its name may be that of a risky operation.
        """
        seen = self.seen
        begun = task is not None and task != seen.task
        is_next = begun and seen.task is not None
        done = seen.tasks + is_next if tasks_completed is None else tasks_completed
        announced = None if next_operation == seen.operation else next_operation
        progress = Progress(
            phase_changed=phase_changed or is_next or phase not in (None, seen.phase or phase),
            tasks_completed=done,
            tasks_seen=seen.tasks,
            next_operation=task if begun and announced is None else announced,
        )
        _, names = should_create_checkpoint(
            progress, metrics, self._clock(), seen.last,
            config=self.config, risky_operations=self.risky_operations,
        )  # fmt: skip
        self.seen = replace(
            seen,
            due=seen.due.union(n for n in names if n != CONTEXT_SIZE or not seen.is_above),
            is_above=self._is_above(metrics.percent),
            phase=seen.phase if phase is None else phase,
            task=seen.task if task is None else task,
            tasks=done,
            operation=next_operation,
        )
        due = [name for name in TRIGGERS if name in self.seen.due]
        return bool(due), due

    def made(self, at: datetime | None = None) -> None:
        """Note that a checkpoint was made: nothing is due, and a new interval starts."""
        last = self._clock() if at is None else checked_time("at", at)
        self.seen = replace(self.seen, last=_utc(last), due=frozenset())

    def _is_above(self, percent: float) -> bool:
        """A size counts again once it has been clearly below its mark."""
        mark = self.config.checkpoint_percent
        was_above = self.seen.is_above and percent >= mark - self.config.zone_leave_points
        return percent > mark or was_above


def _utc(moment: datetime) -> datetime:
    return checked_time("clock", moment).astimezone(UTC)


# -- Thrashing: what leaves comes back again and again, or collections follow close on each other


SEEN = 24
"""How many of the messages that left last are looked at."""
SOON = 8
"""Within how many requests a message comes back that should have stayed."""
LEAST_BACK = 3
SHARE = 0.25
FIRST_PAUSE = 8
LONGEST_PAUSE = 256
ROW = 3
"""How many collections in quick succession are too many."""
CLOSE = 2
LITTLE = 0.1
DEEPER = 0.75
"""The share of the usual target that a deeper collection has. Recorded runs ask for nothing back, so none
of these numbers can be fitted on them."""


class Thrash(msgspec.Struct, frozen=True, kw_only=True):
    """What was found: of `left` messages `came_back` so many, or so many collections in a row.

    Collections for the price pause for the next `pause` requests.
    """

    left: int = 0
    came_back: int = 0
    in_a_row: int = 0
    pause: int = 0


class ThrashBreaker:
    """Watches what leaves and what comes back; requests are counted by the caller."""

    def __init__(self) -> None:
        self._left: dict[str, int] = {}
        self._back: set[str] = set()
        self._pause = FIRST_PAUSE
        self._paused_until = 0
        self._calm = 0
        self._row = 0
        self._made_room = -SOON
        self._deeper = False

    def __copy__(self) -> ThrashBreaker:
        twin = ThrashBreaker()
        vars(twin).update(vars(self), _left=dict(self._left), _back=set(self._back))
        return twin

    def is_paused(self, request: int) -> bool:
        """Return whether nothing may be collected for the price alone before a request."""
        return request < self._paused_until

    def note_left(self, message_ids: Iterable[str], request: int) -> None:
        """Take note of messages that left the view, or were shortened, before a request."""
        for message_id in message_ids:
            self._left.pop(message_id, None)
            self._back.discard(message_id)
            self._left[message_id] = request
            self._calm += 1
        while len(self._left) > SEEN:
            oldest = next(iter(self._left))
            del self._left[oldest]
            self._back.discard(oldest)
        if self._calm > SEEN:
            self._pause = FIRST_PAUSE

    def note_back(self, message_ids: Iterable[str], request: int) -> Thrash | None:
        """Take note of messages that were asked for again; return what is found when that is too often.

        During a pause it is found no second time, but the next collection that makes room goes deeper.
        """
        for message_id in message_ids:
            since = self._left.get(message_id)
            if since is not None and request - since <= SOON:
                self._back.add(message_id)
        if len(self._back) < LEAST_BACK or len(self._back) <= SHARE * len(self._left):
            return None
        found = Thrash(left=len(self._left), came_back=len(self._back), pause=self._pause)
        self._left, self._back, self._calm = {}, set(), 0
        self._deeper = True
        if self.is_paused(request):
            return None
        self._paused_until = request + self._pause
        self._pause = min(LONGEST_PAUSE, 2 * self._pause)
        return found

    def note_room(self, request: int, won: float) -> Thrash | None:
        """Note a collection that had to make room and freed this share of the window."""
        is_close = request - self._made_room <= CLOSE
        self._made_room = request
        self._row = self._row + 1 if is_close and won < LITTLE else 1
        if self._row < ROW:
            return None
        self._row, self._deeper = 0, True
        return Thrash(in_a_row=ROW)

    def take_depth(self) -> float:
        """Return the share of its target that the next collection has that must make room."""
        depth = DEEPER if self._deeper else 1.0
        self._deeper = False
        return depth

    def give_back_depth(self, depth: float) -> None:
        """Take back a depth that was not used, since the collection waited."""
        self._deeper = self._deeper or depth != 1.0

    def to_doc(self) -> dict[str, Any]:
        """Return all that is known as JSON values."""
        return {
            "left": [list(each) for each in self._left.items()],
            "back": sorted(self._back),
            "pause": self._pause,
            "paused_until": self._paused_until,
            "calm": self._calm,
            "row": self._row,
            "made_room": self._made_room,
            "deeper": self._deeper,
        }

    def restate(self, doc: Mapping[str, Any]) -> None:
        """Take the state that a document describes; what it leaves out stays."""
        self._left = dict(doc.get("left", self._left))
        self._back = set(doc.get("back", self._back))
        self._pause = doc.get("pause", self._pause)
        self._paused_until = doc.get("paused_until", self._paused_until)
        self._calm = doc.get("calm", self._calm)
        self._row = doc.get("row", self._row)
        self._made_room = doc.get("made_room", self._made_room)
        self._deeper = doc.get("deeper", self._deeper)
