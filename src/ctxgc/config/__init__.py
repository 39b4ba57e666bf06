"""GCConfig and every way to set it: code over environment over file over default.

`gc_config` is the one frozen value with all keys, `DEFAULTS` their true defaults. `files` reads `gc.json`
in both shapes of the seeds, `profiles` subagent profiles and inline configuration, `environment` variables;
`priorities` is S4's matrix of what stays. `keys` makes errors that name the nearest known key; `explain`
lists all mistakes of a file at once and says where each value comes from; `secrets` masks what may not be
shown.

`GCConfig()` reads the environment. Code that compares with a default uses `DEFAULTS` or
`GCConfig.from_dict({})`, which do not.
"""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.config.environment import SessionSettings, place_of, variables_in_use
    from ctxgc.config.explain import (
        ConfigReport, ExplainedKey, config_schema, environment_warnings, explain_file, origins,
        sift_file,
    )
    from ctxgc.config.files import (
        DEFAULT_PLUGIN, GCSpec, NO_FILE, find_gc_file, load_config, parse_spec, read_gc_file,
        read_object,
    )
    from ctxgc.config.gc_config import DEFAULTS, GCConfig
    from ctxgc.config.keys import (
        NOTICE_FIELDS, check_template, choices, in_words, located, render_notice, unknown_key,
    )
    from ctxgc.config.priorities import LAST_RESORT, PriorityMatrix, PriorityRule
    from ctxgc.config.profiles import Profile, list_profiles, load_profile, parse_inline
    from ctxgc.config.secrets import mask_text, shown
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "environment": "SessionSettings place_of variables_in_use",
            "explain":
                "ConfigReport ExplainedKey config_schema environment_warnings explain_file "
                "origins sift_file",
            "files":
                "DEFAULT_PLUGIN GCSpec NO_FILE find_gc_file load_config parse_spec read_gc_file "
                "read_object",
            "gc_config": "DEFAULTS GCConfig",
            "keys": "NOTICE_FIELDS check_template choices in_words located render_notice unknown_key",
            "priorities": "LAST_RESORT PriorityMatrix PriorityRule",
            "profiles": "Profile list_profiles load_profile parse_inline",
            "secrets": "mask_text shown",
        },
    )
