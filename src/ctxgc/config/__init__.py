"""GCConfig and every way to set it: code over environment over file over default."""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.config.environment import SessionSettings, variables_in_use
    from ctxgc.config.explain import (
        ConfigReport, ExplainedKey, Sifted, config_schema, environment_warnings, explain_file,
        origins, sift_file,
    )
    from ctxgc.config.files import (
        DEFAULT_PLUGIN, GCSpec, find_gc_file, load_config, parse_spec, read_gc_file,
    )
    from ctxgc.config.gc_config import DEFAULTS, FrozenDict, GCConfig
    from ctxgc.config.keys import NOTICE_FIELDS, check_template, choices, render_notice, unknown_key
    from ctxgc.config.profiles import Profile, list_profiles, load_profile, parse_inline
    from ctxgc.config.secrets import mask_text, shown
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "environment": "SessionSettings variables_in_use",
            "explain":
                "ConfigReport ExplainedKey Sifted config_schema environment_warnings "
                "explain_file origins sift_file",
            "files": "DEFAULT_PLUGIN GCSpec find_gc_file load_config parse_spec read_gc_file",
            "gc_config": "DEFAULTS FrozenDict GCConfig",
            "keys": "NOTICE_FIELDS check_template choices render_notice unknown_key",
            "profiles": "Profile list_profiles load_profile parse_inline",
            "secrets": "mask_text shown",
        },
    )
