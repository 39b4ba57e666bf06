"""Settings from environment variables, read only when asked.

Every key answers to `CTXGC_<KEY>` and to its alias `JAATO_GC_<KEY>`; the three percentages that S2
names answer to `JAATO_GC_THRESHOLD`, `JAATO_GC_TARGET` and `JAATO_GC_PRESSURE` as well. The first
name that is set to something wins. Variables of other programs never break ours: an unknown
`CTXGC_*` name is something that `ctxgc config check` reports, not an error.
"""

from __future__ import annotations

import os
from collections.abc import Container, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ctxgc.config.keys import in_words, nearest
from ctxgc.config.secrets import mask_text
from ctxgc.errors import ConfigError
from ctxgc.places import STATE_VARIABLE

_SHORT_NAMES = {
    "threshold_percent": "JAATO_GC_THRESHOLD",
    "target_percent": "JAATO_GC_TARGET",
    "pressure_percent": "JAATO_GC_PRESSURE",
}
_PREFIXES = ("CTXGC_", "JAATO_GC_")
_OTHERS = (
    "CTXGC_PLUGINS_ALLOW",  # read by ctxgc.strategies.plugins
    STATE_VARIABLE,
)
_WORDS = {"yes": "true", "on": "true", "no": "false", "off": "false", "none": "null"}


def variable_names(key: str) -> tuple[str, ...]:
    """Return the variables that set this key, strongest first."""
    upper = key.upper()
    names = (f"CTXGC_{upper}", f"JAATO_GC_{upper}")
    return (*names, _SHORT_NAMES[key]) if key in _SHORT_NAMES else names


def environment_values(
    kind: type[msgspec.Struct], env: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the keys of `kind` that the environment sets, parsed to their types.

    Raises:
        ConfigError: a variable holds something that its key cannot be.
    """
    found = variables_in_use(kind, env)
    if not found:  # looking at the fields costs a session more than all the rest of its start
        return {}
    env = os.environ if env is None else env
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    return {key: _parse(name, env[name], fields[key]) for key, name in found.items()}


def variables_in_use(
    kind: type[msgspec.Struct], env: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return, for each key that the environment sets, the variable that sets it."""
    env = os.environ if env is None else env
    found: dict[str, str] = {}
    for key in kind.__struct_fields__:
        name = next((name for name in variable_names(key) if env.get(name)), None)
        if name is not None:
            found[key] = name
    return found


def unknown_variables(
    kinds: tuple[type[msgspec.Struct], ...], env: Mapping[str, str] | None = None
) -> dict[str, str | None]:
    """Return each variable with our prefix that sets nothing, with the nearest one that does."""
    env = os.environ if env is None else env
    keys = [key for kind in kinds for key in kind.__struct_fields__]
    known = {name for key in keys for name in variable_names(key)}.union(_OTHERS)
    strange = [name for name in sorted(env) if name.startswith(_PREFIXES) and name not in known]
    return {name: _meant(name, keys) for name in strange}


def _meant(name: str, keys: list[str]) -> str | None:
    prefix = next(prefix for prefix in _PREFIXES if name.startswith(prefix))
    key = nearest(name.removeprefix(prefix), keys)
    return f"{prefix}{key.upper()}" if key else None


def _variable(name: str) -> str:
    return f"environment variable {name}"


def place_of(
    error: ConfigError,
    kind: type[msgspec.Struct],
    env: Mapping[str, str] | None = None,
    *,
    code: Container[str] = (),
    file: Container[str] = (),
    origin: str = "",
) -> str:
    """Return the variables, and the file, that the keys of an error come from; empty if that is code.

    `code` and `file` have the keys that are set there; `origin` names the file.
    """
    named = error.details.get("keys") or [error.details.get("key")]
    keys = [key for key in named if key not in code]
    variables = variables_in_use(kind, env)
    places = [_variable(variables[key]) for key in keys if key in variables]
    places += [origin for key in keys if key in file and key not in variables]
    return " and ".join(dict.fromkeys(places))


def _parse(name: str, raw: str, field: msgspec.structs.FieldInfo) -> Any:
    try:
        return _convert(raw.strip(), field)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise ConfigError(
            f"{_variable(name)} {in_words(str(error))}",
            hint=f"correct or unset {name}",
            key=field.name,
            variable=name,
        ) from None


def _convert(raw: str, field: msgspec.structs.FieldInfo) -> Any:
    if isinstance(field.default, tuple):
        parts = [part.strip() for part in raw.strip("[]").split(",") if part.strip()]
        return msgspec.convert(parts, field.type, strict=False)
    if field.default is msgspec.NODEFAULT:
        return msgspec.json.decode(raw, type=field.type)
    try:
        return msgspec.convert(raw, field.type, strict=False)
    except msgspec.ValidationError:
        return msgspec.convert(_WORDS.get(raw.lower(), raw), field.type, strict=False)


# -- Session settings other than GCConfig


class SessionSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`CTXGC_PLUGIN`, `CTXGC_STORE`, `CTXGC_CONTEXT_LIMIT` and so on; None where unset.

    `prices` names a sheet that decisions are weighed with, `price_table` a file with dollars by model.
    """

    plugin: str | None = None
    store: str | None = None
    context_limit: Annotated[int, Meta(ge=1)] | None = None
    prices: str | None = None
    price_table: str | None = None

    @classmethod
    def from_env(cls, env: Mapping[str, str] | None = None) -> SessionSettings:
        """Return what the environment sets.

        Raises:
            ConfigError: `CTXGC_CONTEXT_LIMIT` is not a positive whole number.
        """
        return cls(**environment_values(cls, env))

    def __repr__(self) -> str:
        values = msgspec.structs.asdict(self).items()
        return f"SessionSettings({', '.join(f'{k}={mask_text(str(v))}' for k, v in values)})"
