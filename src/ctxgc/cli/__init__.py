"""The command line: `ctxgc COMMAND`. Without the extra `ctxgc[cli]` it says what to install."""

try:
    from ctxgc.cli.group import main
except ModuleNotFoundError as error:
    if error.name != "click":
        raise
    from ctxgc.cli.missing import main  # type: ignore[assignment] # called as a script only

__all__ = ["main"]
