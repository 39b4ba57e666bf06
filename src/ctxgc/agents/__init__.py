"""Coding agents: what is put into their configuration, and what answers when they call.

The hooks have little time, so this page imports nothing; `ctxgc.agents.installation` and the others are
loaded when they are first used.
"""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.agents.backups import (
        BACKUP_FOLDER, Backup, FileState, backups_of, check_still, newest_backup, restore_backup,
        write_in_place,
    )
    from ctxgc.agents.events import AGENTS, RECALL_TOOL, default_home, store_in
    from ctxgc.agents.hook import run_hook
    from ctxgc.agents.installation import (
        FileEdit, absolute_url, install, stash_to_remove, stash_url_of, uninstall,
    )
    from ctxgc.agents.installation_check import Finding, check
    from ctxgc.agents.plugin_folder import write_plugin_folder
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "backups":
                "BACKUP_FOLDER Backup FileState backups_of check_still newest_backup "
                "restore_backup write_in_place",
            "events": "AGENTS RECALL_TOOL default_home store_in",
            "hook": "run_hook",
            "installation": "FileEdit absolute_url install stash_to_remove stash_url_of uninstall",
            "installation_check": "Finding check",
            "plugin_folder": "write_plugin_folder",
        },
    )
