"""Other libraries, measured on the same runs: each installed in its own environment."""

from __future__ import annotations
