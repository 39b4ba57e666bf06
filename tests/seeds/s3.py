"""S3: context garbage collection plugins."""

from __future__ import annotations

from tests.seeds import Requirement, section

ENTRIES: tuple[Requirement, ...] = (
    *section(
        "S3.architecture",
        "Architecture",
        {
            "plugin-protocol": "GCPlugin is what every strategy implements.",
            "result-tokens-freed": "GCResult says how many tokens were freed.",
            "trigger-reasons": "GCTriggerReason names threshold, turn limit, manual and the others.",
        },
        issue=3,
        code="strategies/base.py",
        differs={
            "plugin-protocol": "Imported from `ctxgc`, where the seed has `shared.plugins.gc`; the same goes for all names below.",
        },
    ),
    *section(
        "S3.truncate",
        "gc_truncate",
        {
            "oldest-removed": "The oldest turns are removed entirely.",
            "recent-kept": "The preserved recent turns stay.",
            "notifies": "With `notify_on_gc` a notification enters the history.",
        },
        issue=3,
        code="strategies/truncate.py",
        differs={
            "oldest-removed": "`TruncateStrategy()` is the seed's `create_plugin()`, and so for the others. Only as many as the target asks for; the seed drops all but the recent. What leaves is in the session's stash.",
            "notifies": "Not when nothing left, or when the notice would cost more than was freed.",
        },
    ),
    *section(
        "S3.summarize",
        "gc_summarize",
        {
            "compresses": "Old turns become one summary by the given function.",
            "recent-kept": "The preserved recent turns stay.",
            "summarizer-required": "Without a summarizer it says that it needs one.",
        },
        issue=3,
        code="strategies/summarize.py",
        differs={
            "compresses": "Only as many as the target asks for. The originals are in the session's stash.",
            "summarizer-required": "It then goes on with an extract that needs no model: under pressure, no relief would be worse.",
        },
    ),
    *section(
        "S3.hybrid",
        "gc_hybrid",
        {
            "recent-kept": "Recent turns stay intact.",
            "middle-summarized": "Middle turns are summarized when a summarizer exists.",
            "ancient-truncated": "Ancient turns are truncated.",
            "summarizer-optional": "Without a summarizer it still works.",
        },
        issue=3,
        code="strategies/hybrid.py",
        differs={
            "middle-summarized": "Only while the target is unmet. The seed has 10 and 15 middle turns; the default is 10.",
            "summarizer-optional": "The middle is then truncated (`middle_truncated`). One that fails is replaced by an extract.",
        },
    ),
    *section(
        "S3.config",
        "GCConfig options",
        {
            "threshold-percent-default": "`threshold_percent` is 80.",
            "threshold-percent-env": "`JAATO_GC_THRESHOLD` overrides the threshold.",
            "max-turns-default": "`max_turns` is None.",
            "max-turns-triggers": "More turns than `max_turns` trigger a collection.",
            "max-turns-holds": "No request carries more turns than `max_turns`.",
            "auto-trigger-default": "`auto_trigger` is True.",
            "auto-trigger-off": "Without `auto_trigger` nothing is collected by itself.",
            "watched-when-off": "Without `auto_trigger`, without `check_before_send` and with `gc_none` the context is watched all the same.",
            "check-before-send-default": "`check_before_send` is True.",
            "check-before-send": "The check runs before each message is sent.",
            "preserve-recent-turns-default": "`preserve_recent_turns` is 5.",
            "pinned-turn-indices-default": "`pinned_turn_indices` is empty.",
            "pinned-turn-indices": "Pinned turns are never removed.",
        },
        issue=3,
        code="config/gc_config.py",
        differs={
            "max-turns-triggers": "Down to three quarters of the limit (`target_percent` / `threshold_percent`), so that not every further turn collects again.",
            "max-turns-holds": "`preserve_recent_turns` yields to it, pins and roots do not: `GCResult.turns_over` then says how many turns are too many.",
            "preserve-recent-turns-default": "For `gc_mark_sweep`, where a turn may hold hundreds of calls, those that leave last.",
            "pinned-turn-indices": "Resolved to message ids once, so that an inserted notice does not move a pin.",
            "check-before-send": "Without it, after everything that comes in.",
        },
        doors={
            "max-turns-holds": {
                "engine": "Not there: segments have no turns.",
                "Session": "At every request.",
            },
            "watched-when-off": {
                "engine": "Not there: `ContextMonitor` watches by itself.",
                "Session": "Alerts, zones, checkpoints at their triggers, `ContextOverflowError` with its cause.",
            },
        },
    ),
    *section(
        "S3.options",
        "Plugin config options",
        {
            "preserve-recent-turns": "A plugin's own `preserve_recent_turns` overrides the config's.",
            "notify-on-gc": "`notify_on_gc` puts a notification into the history, in all plugins.",
            "notification-template": "`notification_template` words the notification.",
            "summarizer": "`summarizer` is the function that makes summaries.",
            "summarize-middle-turns": "`summarize_middle_turns` says how many turns are summarized.",
        },
        issue=3,
        code="strategies/builtin.py",
        differs={
            "notify-on-gc": "Not when nothing left: a collection must not grow the context.",
            "notification-template": "An unknown field is refused when the option is set; it used to fail the collection.",
            "summarizer": "For gc_summarize and gc_hybrid; the others, which do not summarize, refuse it.",
        },
    ),
    *section(
        "S3.file",
        "1 File-based configuration",
        {
            "default-path": "`load_gc_from_file()` reads `.jaato/gc.json` of the project.",
            "flat-form": "The flat form with `type` and the named keys loads.",
            "null-max-turns": "`max_turns: null` means no turn limit.",
            "returns-pair": "`load_gc_from_file()` returns the plugin and its config.",
            "absent": "`load_gc_from_file()` returns None when there is no file.",
        },
        issue=3,
        code="config/files.py",
        differs={
            "default-path": "`.ctxgc/gc.json` comes first.",
        },
    ),
    *section(
        "S3.profiles",
        "2 Profile-based configuration",
        {
            "gc-field": "A profile in `.jaato/profiles/` may carry a `gc` field.",
            "spawn": "A subagent spawned with the profile has that collector.",
        },
        issue=3,
        code="config/profiles.py",
        differs={
            "gc-field": "`.ctxgc/profiles/` comes first.",
        },
    ),
    *section(
        "S3.inline",
        "3 Inline configuration",
        {
            "spawn": "`spawn_subagent(inline_config={'gc': ...})` configures one subagent.",
            "low-threshold": "A threshold of 5% triggers early.",
            "type-default": "`type` is `truncate` unless given.",
            "threshold-percent-default": "`threshold_percent` is 80 unless given.",
            "preserve-recent-turns-default": "`preserve_recent_turns` is 5 unless given.",
            "notify-on-gc-default": "`notify_on_gc` is true unless given.",
            "summarize-middle-turns-default": "`summarize_middle_turns` is null unless given.",
            "max-turns-default": "`max_turns` is null unless given.",
            "plugin-config-default": "`plugin_config` is empty unless given.",
        },
        issue=3,
        code="config/profiles.py",
        differs={
            "spawn": "A method of `ChatClient`.",
        },
    ),
    *section(
        "S3.client",
        "4 Programmatic configuration",
        {
            "connect": "A client connects to a model.",
            "set-gc-plugin": "`set_gc_plugin(plugin, config)` sets the collector.",
            "automatic": "Collections happen by themselves in `send_message`.",
            "manual-gc": "`manual_gc()` collects now and returns the result.",
            "history": "`get_gc_history()` returns the results with plugin name and item count.",
            "none-records-nothing": "With `gc_none`, which is ours, nothing is collected and no result is recorded.",
        },
        issue=3,
        code="client/client.py",
        differs={
            "connect": "`ChatClient`, where the seed has `JaatoClient`; `project` is OpenAI's project, `location` the address. The window follows from the model.",
        },
    ),
    *section(
        "S3.discovery",
        "Plugin discovery",
        {
            "discover": "`discover_gc_plugins()` maps names to plugins.",
            "built-ins": "gc_truncate, gc_summarize and gc_hybrid are found.",
            "load": "`load_gc_plugin(name, config)` returns an initialized plugin.",
        },
        issue=3,
        code="strategies/plugins.py",
        differs={
            "built-ins": "They are in a table, not behind entry points, so that a source tree or a frozen program finds them, too.",
        },
    ),
    *section(
        "S3.custom",
        "Creating custom GC plugins",
        {
            "name": "A plugin has a `name`.",
            "initialize": "`initialize(config=None)` gets the plugin's options.",
            "shutdown": "`shutdown()` ends the plugin.",
            "should-collect": "`should_collect(usage, config)` returns a decision and a reason.",
            "collect-four-arguments": "A plugin whose `collect` takes no budget still works.",
            "create-plugin": "A module's `create_plugin()` makes the plugin.",
            "entry-point": "A plugin registered under `jaato.gc_plugins` is found.",
        },
        issue=3,
        code="strategies/plugins.py",
        differs={
            "entry-point": "Read as an alias of the group `ctxgc.plugins`.",
        },
    ),
)
