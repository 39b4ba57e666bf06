"""A dictionary that cannot be changed, for options inside frozen configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn


class FrozenDict(dict[str, Any]):
    """A dict that refuses every change; copies and pickles like any other."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("configuration is frozen; use GCConfig.replace(...)")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[FrozenDict], tuple[dict[str, Any]]]:
        return FrozenDict, (dict(self),)


def freeze(options: Mapping[str, Any]) -> FrozenDict:
    """Return the same options as a FrozenDict."""
    return options if isinstance(options, FrozenDict) else FrozenDict(options)
