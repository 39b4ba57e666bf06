"""The parts of the strict server: what it reads, what it refuses, how it answers."""

from __future__ import annotations
