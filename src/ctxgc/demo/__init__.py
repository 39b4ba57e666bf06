"""`python -m ctxgc.demo`: watch a session fill its window, and a collection run.

`story` turns an invented agent's work into segments, `run` lets the engine work on them, `pages` says
what happened in lines of text, and `screen` puts them on the terminal. `report` writes the session down,
with the page of `ctxgc analyze` about it.
"""

from __future__ import annotations
