"""Other libraries, measured on the same runs: each from its own package, in an environment of its own."""

from __future__ import annotations
