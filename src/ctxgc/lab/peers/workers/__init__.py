"""Scripts that let one library edit a history; each is run by the interpreter of that library.

They import nothing from ctxgc, only `shared` from their own folder, as scripts do.
"""

from __future__ import annotations
