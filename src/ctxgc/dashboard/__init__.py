"""The dashboard: every session live, and a time machine for the window of each.

`page_file` gives the files of the page (`page/`: ES modules, no build step), for a server or, joined into one
script, for a report in a file of its own.
"""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.dashboard.page_files import PageFile, page_file
    from ctxgc.dashboard.report import report_page, timeline_page
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "page_files": "PageFile page_file",
            "report": "report_page timeline_page",
        },
    )
