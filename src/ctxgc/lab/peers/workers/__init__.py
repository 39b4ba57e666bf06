"""Scripts that let one library edit a history; each is run by the interpreter of that library.

They import nothing of ctxgc, and only what stands beside them, as scripts do.
"""

from __future__ import annotations
