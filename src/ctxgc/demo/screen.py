"""The terminal: in colour with rich where that is installed and somebody looks, else plain text."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TextIO

from ctxgc.drawing.terminal import STYLES, Line, bar, text_of, zone

Show = Callable[[int, int], None]


class Screen(Protocol):
    """What the demo draws on."""

    def line(self, line: Line) -> None:
        """Put one line down."""

    def filling(self, window: int) -> Any:
        """Return a context manager that gives a function to show segments and tokens with."""


class PlainScreen:
    """Text without colours, for pipes, files and machines without rich."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def line(self, line: Line) -> None:
        """Print a line."""
        print(text_of(line).rstrip(), file=self._stream)

    @contextmanager
    def filling(self, window: int) -> Iterator[Show]:  # noqa: ARG002
        """Show nothing: the chart says it afterwards."""
        yield lambda _segments, _tokens: None


class RichScreen:
    """Colours, and a window that fills while one watches."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console  # noqa: PLC0415  an extra

        self._console = Console(file=stream, highlight=False)

    def line(self, line: Line) -> None:
        """Print a line in its styles."""
        self._console.print(_rich(line), no_wrap=True, overflow="crop", crop=True)

    @contextmanager
    def filling(self, window: int) -> Iterator[Show]:
        """Show the window as it fills, on one line that goes away at the end."""
        from rich.live import Live  # noqa: PLC0415  an extra

        with Live(console=self._console, transient=True, refresh_per_second=20) as live:
            yield lambda segments, tokens: live.update(_rich(_gauge(segments, tokens, window)))


def open_screen(stream: TextIO) -> Screen:
    """Return the screen that fits a stream."""
    if stream.isatty() and importlib.util.find_spec("rich") is not None:
        return RichScreen(stream)
    return PlainScreen(stream)


def _gauge(segments: int, tokens: int, window: int) -> Line:
    percent = 100 * tokens / window
    name = zone(percent)
    return [
        ("  window ", ""),
        *bar(percent, 60),
        (f" {percent:3.0f}% {name:<8}", name),
        (f" {segments}", ""),
    ]


def _rich(line: Line) -> Any:
    from rich.text import Text  # noqa: PLC0415  an extra

    return Text.assemble(*((text, STYLES[style]) for text, style in line))
