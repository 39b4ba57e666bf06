"""Sixty texts that are programs where a page takes text for markup: each would set `window.hacked`."""

from __future__ import annotations

_RUN = "window.hacked=1"

_TAGS = (
    "<script>{0}</script>", "<img src=x onerror={0}>", "<svg onload={0}>", "<body onload={0}>",
    "<iframe srcdoc='<script>parent.{0}</script>'>", "<details open ontoggle={0}>",
    "<video><source onerror={0}>",
    "<input autofocus onfocus={0}>", "<a href='javascript:{0}'>x</a>", "<math><mtext><img src=x onerror={0}>",
)  # fmt: skip
_BEFORE = ("", '">', "'>", "</pre>", "</title>", "-->")

HOSTILE = [before + tag.format(_RUN) for before in _BEFORE for tag in _TAGS]
