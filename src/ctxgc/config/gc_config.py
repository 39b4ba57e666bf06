"""GCConfig: when to collect, how far down, what to keep, all in one frozen value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NoReturn

import msgspec
from msgspec import Meta

from ctxgc.config.environment import environment_values, place_of
from ctxgc.config.keys import build, check_template, located
from ctxgc.config.priorities import PriorityMatrix
from ctxgc.config.secrets import shown
from ctxgc.errors import ConfigError

# -- Frozen options


class FrozenDict(dict[str, Any]):
    """A dict that refuses every change; copies and pickles like any other."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("configuration is frozen; use GCConfig.replace(...)")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[FrozenDict], tuple[dict[str, Any]]]:
        return FrozenDict, (dict(self),)


def _freeze(options: Mapping[str, Any]) -> FrozenDict:
    """Return the same options as a FrozenDict."""
    return options if isinstance(options, FrozenDict) else FrozenDict(options)


# -- Relations between the percentages


# The share of the threshold that an unset target follows down to: 60 of 80, as in S2.
_TARGET_SHARE = 0.75

_AT_MOST = (
    ("target_percent", "threshold_percent"),
    ("threshold_percent", "hard_limit_percent"),
    ("soft_limit_percent", "hard_limit_percent"),
    ("prune_to_percent", "critical_percent"),
)
_BELOW = (
    ("warning_percent", "danger_percent"),
    ("danger_percent", "critical_percent"),
    ("zone_leave_points", "warning_percent"),
)
_FOLLOWS_DOWN = (
    ("threshold_percent", "hard_limit_percent", 1.0),
    ("soft_limit_percent", "hard_limit_percent", 1.0),
    ("target_percent", "threshold_percent", _TARGET_SHARE),
    ("prune_to_percent", "critical_percent", _TARGET_SHARE),
)


def _settle(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given values, plus the defaults that must change to agree with them."""
    values = dict(given)
    _lift(values, defaults, "hard_limit_percent", "threshold_percent")
    for key, limit, share in _FOLLOWS_DOWN:
        _lower(values, defaults, key, limit, share)
    return values


def leaders(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, str]:
    """Return the defaults that must change, each with the key that it follows."""
    led_by = {"hard_limit_percent": "threshold_percent"}
    led_by.update({key: limit for key, limit, _ in _FOLLOWS_DOWN})
    return {key: led_by[key] for key in _settle(given, defaults) if key not in given}


def _check_order(config: msgspec.Struct) -> None:
    """Raise ConfigError, naming both keys, if two limits contradict each other."""
    for low, high in _AT_MOST:
        if getattr(config, low) > getattr(config, high):
            raise _contradiction(config, low, "is above", high)
    for low, high in _BELOW:
        if getattr(config, low) >= getattr(config, high):
            raise _contradiction(config, low, "is not below", high)


def _contradiction(config: msgspec.Struct, low: str, relation: str, high: str) -> ConfigError:
    return ConfigError(
        f"{low} ({getattr(config, low):g}) {relation} {high} ({getattr(config, high):g})",
        hint=f"lower {low} or raise {high}",
        keys=[low, high],
    )


def _lower(
    values: dict[str, Any], defaults: Mapping[str, Any], key: str, limit: str, share: float
) -> None:
    bound = _number(values.get(limit))
    if key not in values and bound is not None and defaults[key] > bound:
        values[key] = bound * share


def _lift(values: dict[str, Any], defaults: Mapping[str, Any], key: str, floor: str) -> None:
    bound = _number(values.get(floor))
    if key not in values and bound is not None and defaults[key] < bound:
        values[key] = bound


def _number(value: object) -> float | None:
    # What is not a number is left to the type check, which names the key.
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


Percent = Annotated[float, Meta(gt=0, le=100)]
Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0)]


def _says(text: str) -> Meta:
    """Return the one-line description of a key, which the JSON Schema and `config check` show."""
    return Meta(description=text)


class _Resolution(msgspec.StructMeta):
    """Makes `GCConfig(...)` take from the environment what the caller does not pass."""

    def __call__(cls, **given: Any) -> Any:  # noqa: N805 (a metaclass)
        try:
            return _assemble({**environment_values(GCConfig), **given})
        except ConfigError as error:
            raise located(error, place_of(error, GCConfig, code=given)) from None


class GCConfig(
    msgspec.Struct, metaclass=_Resolution, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """The whole configuration. What you pass wins over the environment, that over the default.

    Raises:
        ConfigError: a key is unknown, a value has the wrong type or range, or two contradict.
    """

    threshold_percent: Annotated[Percent, _says("Collect when usage reaches this share.")] = 80.0
    target_percent: Annotated[Percent, _says("Where a collection tries to land.")] = 60.0
    pressure_percent: Annotated[
        Annotated[float, Meta(ge=0, le=100)] | None,
        _says(
            "From here on PRESERVABLE content may go. 0 or null: continuous mode, which collects "
            "whenever usage is above the target and never touches PRESERVABLE."
        ),
    ] = 90.0
    max_turns: Annotated[Positive | None, _says("Collect when there are more turns.")] = None
    auto_trigger: Annotated[bool, _says("Collect without being asked.")] = True
    check_before_send: Annotated[bool, _says("Check before each request is sent.")] = True
    preserve_recent_turns: Annotated[
        Count, _says("Newest turns that stay (gc_mark_sweep: that leave last).")
    ] = 5
    pinned_turn_indices: Annotated[Sequence[Count], _says("Turns that never leave.")] = ()
    plugin_config: Annotated[
        Mapping[str, Any], _says("Options handed to the plugin's initialize().")
    ] = msgspec.field(default_factory=FrozenDict)

    preserve_clarifications: Annotated[
        bool, _says("Questions to the user and the answers become PRESERVABLE by themselves.")
    ] = True

    notify_on_gc: Annotated[bool, _says("Leave a note in the view after a collection.")] = True
    notification_template: Annotated[str | None, _says("The text of that note.")] = None
    summarize_middle_turns: Annotated[
        Count | None, _says("gc_hybrid: turns before the recent ones that are summarised.")
    ] = 10
    summarizer_timeout_seconds: Annotated[Seconds, _says("Patience with a summarizer.")] = 30.0

    recent_messages: Annotated[Count, _says("Newest messages that are roots.")] = 10
    recent_user_messages: Annotated[Count, _says("Newest user messages that are roots.")] = 3
    decision_window_seconds: Annotated[
        Annotated[float, Meta(ge=0)], _says("Decisions younger than this are roots.")
    ] = 3600.0
    recent_files: Annotated[Count, _says("Files last opened or edited that are roots.")] = 5
    promote_after: Annotated[Positive, _says("Collections survived before tenure.")] = 3

    soft_limit_percent: Annotated[Percent, _says("Small steps start at this share.")] = 70.0
    hard_limit_percent: Annotated[Percent, _says("Collect fully, whatever it costs.")] = 90.0
    batch: Annotated[Positive, _says("Most segments moved by one small step (5-20 is wise).")] = 20
    score_profile: Annotated[
        Literal["default", "s0", "s1", "points"], _says("The keep_score formula.")
    ] = "default"
    score_weights: Annotated[
        Mapping[str, float], _says("Coefficients of that formula to override, by name.")
    ] = msgspec.field(default_factory=FrozenDict)

    evacuate_min_tokens: Annotated[
        Count, _says("Results smaller than this are not worth a tombstone.")
    ] = 40
    evacuate_keep_percent: Annotated[
        Annotated[float, Meta(ge=0, le=100)], _says("Most of a result that stays as live lines.")
    ] = 100.0
    tombstone_names_percent: Annotated[
        Annotated[float, Meta(ge=0, le=100)], _says("Most of a result that its name list costs.")
    ] = 15.0
    auto_recall: Annotated[
        bool, _says("Recall by itself what a new message names and only the stash holds.")
    ] = True
    recall_hold_collections: Annotated[
        Count, _says("Collections that a recalled segment is safe from.")
    ] = 3
    stash_max_age_seconds: Annotated[Seconds | None, _says("Stash age limit; null: none.")] = None
    stash_max_bytes: Annotated[Positive | None, _says("Stash size limit; null: none.")] = None

    secrets: Annotated[
        Literal["off", "mark", "mask", "refuse"],
        _says(
            "Likely keys in what comes in: ignored, marked with a tag and an event, also masked in "
            "tombstones, exports and recalled lines, or refused."
        ),
    ] = "mark"

    warning_percent: Annotated[Percent, _says("The warning zone starts here.")] = 70.0
    danger_percent: Annotated[Percent, _says("The danger zone starts here.")] = 85.0
    critical_percent: Annotated[Percent, _says("The critical zone starts here.")] = 95.0
    zone_leave_points: Annotated[
        Annotated[float, Meta(ge=0, lt=100)], _says("A zone is left this far below its start.")
    ] = 5.0
    prune_to_percent: Annotated[Percent, _says("Where pruning by priority lands.")] = 70.0
    priorities: Annotated[
        Mapping[str, Sequence[str | Mapping[str, Any]]],
        _says(
            "The lists always_keep, keep_if_relevant, keep_if_space and always_prune to replace, "
            "each of rules by name or as objects."
        ),
    ] = msgspec.field(default_factory=FrozenDict)
    checkpoint_percent: Annotated[Percent, _says("Make a checkpoint above this share.")] = 80.0
    checkpoint_interval_seconds: Annotated[
        Seconds, _says("Make a checkpoint when the last is older.")
    ] = 1800.0
    checkpoint_every_tasks: Annotated[
        Positive, _says("Make a checkpoint after so many completed tasks.")
    ] = 5

    def __post_init__(self) -> None:
        pins = tuple(self.pinned_turn_indices)
        msgspec.structs.force_setattr(self, "pinned_turn_indices", pins)
        for key in ("plugin_config", "score_weights", "priorities"):
            msgspec.structs.force_setattr(self, key, _freeze(getattr(self, key)))

    @property
    def continuous(self) -> bool:
        """Whether to collect whenever usage is above the target, sparing all PRESERVABLE."""
        return not self.pressure_percent

    @property
    def matrix(self) -> PriorityMatrix:
        """S4's priority matrix with the lists that `priorities` replaces."""
        return PriorityMatrix.from_dict(self.priorities)

    def replace(self, **changes: Any) -> GCConfig:
        """Return a copy with these keys changed; keys at their defaults follow as in a new one."""
        kept = {
            key: value
            for key, value in msgspec.structs.asdict(self).items()
            if value != DEFAULTS[key]
        }
        return _assemble({**kept, **changes})

    def to_dict(self) -> dict[str, Any]:
        """Return every key as plain data; callables in `plugin_config` stay callables."""
        return {
            key: list(value)
            if isinstance(value, tuple)
            else (dict(value) if isinstance(value, Mapping) else value)
            for key, value in msgspec.structs.asdict(self).items()
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> GCConfig:
        """Return the configuration with exactly these values, whatever the environment says."""
        return _assemble(values)

    def describe(self) -> dict[str, Any]:
        """Return every key as JSON-ready data with secrets masked and callables by name."""
        return {key: shown(value) for key, value in msgspec.structs.asdict(self).items()}

    def __repr__(self) -> str:
        changed = {
            key: value for key, value in self.describe().items() if value != shown(DEFAULTS[key])
        }
        return f"GCConfig({', '.join(f'{key}={value!r}' for key, value in changed.items())})"


DEFAULTS: Mapping[str, Any] = FrozenDict(
    {
        field.name: FrozenDict() if field.default is msgspec.NODEFAULT else field.default
        for field in msgspec.structs.fields(GCConfig)
    }
)
"""Every key with its true default: what it is unless code, file or environment sets it."""


def _assemble(given: Mapping[str, Any]) -> GCConfig:
    matrix = given.get("priorities")
    if matrix is not None:
        if not isinstance(matrix, PriorityMatrix):
            matrix = PriorityMatrix.from_dict(matrix)
        given = {**given, "priorities": matrix.to_dict()}
    config = build(GCConfig, _settle(given, DEFAULTS))
    _check_order(config)
    if config.notification_template is not None:
        check_template(config.notification_template)
    return config
