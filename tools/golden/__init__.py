"""Goldens: what ctxgc answers today, written down, so that a change of its source shows.

A golden is a text that a scenario makes through the command line, the front door `ctxgc` and the faces
of its rooms. Nothing here reaches behind those, so that the scenarios outlive any restructuring.
"""

from tools.golden import commands, served, stored, strategies
from tools.golden.book import GoldenBook


def goldens() -> GoldenBook:
    """Return the book of all goldens."""
    book = GoldenBook()
    commands.add_to(book)
    stored.add_to(book)
    strategies.add_to(book)
    served.add_to(book)
    return book
