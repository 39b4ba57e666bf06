"""Thrift: collecting to save money while the window is far from full.

A tool result is cheapest to shorten right after the agent has seen it, when little stands behind it.
So before each request this room decides which results are dead by now, what of them must stay
(the lines that hold identifiers nothing else in the view holds), and whether the re-written tail
costs less than the tokens that every later request no longer reads.
"""

from ctxgc.thrift.collector import Request, Thrift
from ctxgc.thrift.cutting import Books
from ctxgc.thrift.presets import PRESETS, Preset, custom, preset
from ctxgc.thrift.rounds import Edit

__all__ = ["PRESETS", "Books", "Edit", "Preset", "Request", "Thrift", "custom", "preset"]
