"""`python -m ctxgc.demo`: watch a session fill its window, and a collection run.

`run` has the scripted agent of `ctxgc.testing` work in a real `Session`, once in a window that gets full and
once in a large one, and records what leaves, why, and what comes back; `pages` describes that in lines of
text, on a terminal or in plain text, and writes the session as a transcript with the report of `ctxgc
analyze` about it. `ctxgc demo` calls `__main__`.
"""

from __future__ import annotations
