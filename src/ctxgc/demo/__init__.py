"""`python -m ctxgc.demo`: watch a session fill its window, and a collection run.

`run` turns the work of the scripted agent of `ctxgc.testing` into segments and lets the engine collect
them; `pages` describes what happened in lines of text, on a terminal or in plain text, and writes the
session as a transcript with the report of `ctxgc analyze` about it. `ctxgc demo` calls `__main__`.
"""

from __future__ import annotations
