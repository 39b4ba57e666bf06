"""The guard: how full the context is, and what is done about it in time."""

from ctxgc.guard.zones import Zone, zone_of

__all__ = ["Zone", "zone_of"]
