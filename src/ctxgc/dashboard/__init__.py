"""The dashboard: every session live, and a time machine for the window of each.

`page_file` gives the files of the page (`page/`: ES modules, no build step), for a server or, joined into one
script, for a report in a file of its own. `DashboardApp` serves it with its data: `sessions` is what it
shows, `actions` what can be done to a session, `changes` tells the page what changed; `start` is a server
for it alone.
"""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.dashboard.actions import HoldSession
    from ctxgc.dashboard.app import DashboardApp, PATH
    from ctxgc.dashboard.page_files import PageFile, page_file
    from ctxgc.dashboard.report import report_page, timeline_page
    from ctxgc.dashboard.sessions import DashboardSessions
    from ctxgc.dashboard.start import DashboardOptions, dashboard_tokens, run_dashboard
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "actions": "HoldSession",
            "app": "DashboardApp PATH",
            "page_files": "PageFile page_file",
            "report": "report_page timeline_page",
            "sessions": "DashboardSessions",
            "start": "DashboardOptions dashboard_tokens run_dashboard",
        },
    )
