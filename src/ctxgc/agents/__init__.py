"""Coding agents: ctxgc in their configuration, the hooks that they call, and backups of their transcripts.

`installation` adds ctxgc to the files of an agent (`agent_configs` says which, `json_config` and
`toml_config` edit them) and removes it without a trace; `installation_check` is what `ctxgc doctor`
runs; `plugin_folder` writes a Claude Code plugin. `hook` is the program that agents call: `events`
dispatches to `big_output` (stash a big tool output), `compaction` (save and quote the roots) and
`status_line`, which read `transcript`; `checkpoints` are copies of it. `backups` changes a transcript in
place so that it can be undone.

Hooks run after every tool call: importing this page loads nothing, and a hook loads only what its event
needs.
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
    from ctxgc.agents.events import AGENTS, MCP_RECALL_TOOL
    from ctxgc.agents.hook import run_hook
    from ctxgc.agents.installation import (
        FileEdit, absolute_url, install, unused_stash, stash_url_of, uninstall,
    )
    from ctxgc.agents.installation_check import Finding, check
    from ctxgc.agents.plugin_folder import PLUGIN_RECALL_TOOL, write_plugin_folder
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "backups":
                "BACKUP_FOLDER Backup FileState backups_of check_still newest_backup "
                "restore_backup write_in_place",
            "events": "AGENTS MCP_RECALL_TOOL",
            "hook": "run_hook",
            "installation": "FileEdit absolute_url install unused_stash stash_url_of uninstall",
            "installation_check": "Finding check",
            "plugin_folder": "PLUGIN_RECALL_TOOL write_plugin_folder",
        },
    )
