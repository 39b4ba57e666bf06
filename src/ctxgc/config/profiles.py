"""Subagent profiles and inline configuration: two more places that name a plugin."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ctxgc.config.files import FOLDERS, GCSpec, parse_spec, read_object
from ctxgc.config.keys import build, located, reject_unknown, unknown_key
from ctxgc.errors import ConfigError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*")


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of subagent: what it is called, which tools it gets, how its context is collected."""

    name: str
    description: str = ""
    plugins: tuple[str, ...] = ()
    model: str | None = None
    system_instructions: str | None = None
    gc: GCSpec | None = None


class _ProfileFile(msgspec.Struct, kw_only=True):
    name: str
    description: str = ""
    plugins: tuple[str, ...] = ()
    model: str | None = None
    system_instructions: str | None = None
    gc: dict[str, Any] | None = None


def load_profile(name: str, root: str | Path | None = None) -> Profile:
    """Return the profile in `.ctxgc/profiles/NAME.json`, else in `.jaato/profiles/NAME.json`.

    Raises:
        ConfigError: the name is not a plain file name, no such profile exists, or it is wrong.
    """
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"profile name {name!r} is not a plain name", hint="use letters, digits, . _ -"
        )
    path = _profile_files(root).get(name)
    if path is None:
        raise unknown_key(name, _profile_files(root), "profile")
    return _read(path)


def list_profiles(root: str | Path | None = None) -> tuple[str, ...]:
    """Return the names of all profiles under `root` (else here), sorted."""
    return tuple(sorted(_profile_files(root)))


def parse_inline(inline: Mapping[str, Any]) -> GCSpec | None:
    """Return the spec in `inline["gc"]`, with S3's inline defaults, or None if it has none.

    Raises:
        ConfigError: a key is unknown or has a wrong value.
    """
    reject_unknown(inline, ("gc",))
    gc = inline.get("gc")
    if gc is None:
        return None
    if not isinstance(gc, Mapping):
        raise ConfigError('inline "gc" is not an object', hint="write an object of keys", key="gc")
    spec = parse_spec(gc, origin="inline configuration", default_plugin="truncate")
    values = {"summarize_middle_turns": None, **spec.values}
    return msgspec.structs.replace(spec, values=values)


def _profile_files(root: str | Path | None) -> dict[str, Path]:
    base = Path.cwd() if root is None else Path(root)
    files = [path for folder in FOLDERS for path in (base / folder / "profiles").glob("*.json")]
    # The first folder wins, so it is put in last.
    return {path.stem: path for path in reversed(files)}


def _read(path: Path) -> Profile:
    content = read_object(path)
    try:
        stored = build(_ProfileFile, {"name": path.stem, **content})
    except ConfigError as error:
        raise located(error, str(path)) from None
    gc = None if stored.gc is None else parse_spec(stored.gc, origin=str(path))
    return Profile(
        **{key: getattr(stored, key) for key in stored.__struct_fields__ if key != "gc"}, gc=gc
    )
