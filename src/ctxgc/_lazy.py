"""The faces of rooms: names that others may use, each loaded from its file when it is first used."""

from __future__ import annotations

TYPE_CHECKING = False  # the constant of typing, which takes as long to load as the interpreter
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def lazy(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package that loads its names on first use.

    `homes` maps a file of the package, or another room by its full name, to the names that come from
    there, with blanks between. So a program pays only for what it uses: a hook of a coding agent that
    has nothing to do loads five small files.
    """
    home_of = {name: home for home, names in homes.items() for name in names.split()}

    def load(name: str) -> Any:
        home = home_of.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        import importlib  # noqa: PLC0415 (see above)
        import sys  # noqa: PLC0415

        module = home if home.startswith("ctxgc.") else f"{package}.{home}"
        value = getattr(importlib.import_module(module), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        import sys  # noqa: PLC0415

        return sorted({*vars(sys.modules[package]), *home_of})

    return load, names, sorted(home_of)
