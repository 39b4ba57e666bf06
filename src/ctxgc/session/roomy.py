"""Roomy windows: where what leaves is chosen by its price, long before room is needed."""

from __future__ import annotations

from collections.abc import Callable

from ctxgc.core.message import Message
from ctxgc.economics import PriceSheet
from ctxgc.strategies.base import GCPlugin
from ctxgc.strategies.mark_sweep import MarkSweepStrategy
from ctxgc.thrift import Preset, Thrift, custom, preset
from ctxgc.wire.texts import Texts

ROOMY_WINDOW = 100_000
"""In a smaller window what leaves is chosen by its worth, when room is needed, not by its price."""


def thrift_for(
    plugin: GCPlugin,
    context_limit: int,
    prices: PriceSheet,
    tokens: Callable[[Message], int],
    texts: Texts,
) -> Thrift | None:
    """Return what collects for the price alone, if the strategy asks for it and the window is roomy."""
    how = preset_of(plugin)
    if not isinstance(plugin, MarkSweepStrategy) or how is None or context_limit < ROOMY_WINDOW:
        return None
    chosen = plugin.thrift
    trims = how.trims_calls if chosen.trim_calls is None else chosen.trim_calls
    return Thrift(how, prices, tokens, texts=texts, trims_calls=trims)


def preset_of(plugin: GCPlugin) -> Preset | None:
    """Return by which constants a strategy wants to collect for the price; None if it does not.

    Raises:
        ConfigError: its constants are wrong.
    """
    if not isinstance(plugin, MarkSweepStrategy):
        return None
    chosen = plugin.thrift
    own = None if chosen.constants is None else custom(chosen.constants)
    if chosen.preset == "off":
        return None
    return own or preset(chosen.preset)
