"""GCConfig and every way to set it: code over environment over file over default."""

from ctxgc.config.explain import (
    ExplainedKey,
    Explanation,
    config_schema,
    environment_warnings,
    explain_file,
    origins,
)
from ctxgc.config.files import (
    DEFAULT_PLUGIN,
    GCSpec,
    find_gc_file,
    load_config,
    parse_spec,
    read_gc_file,
)
from ctxgc.config.frozen import FrozenDict
from ctxgc.config.gc_config import DEFAULTS, GCConfig
from ctxgc.config.keys import choices, unknown_key
from ctxgc.config.mistakes import Sifted, sift_file
from ctxgc.config.notice import NOTICE_FIELDS, check_template, render_notice
from ctxgc.config.profiles import Profile, list_profiles, load_profile, parse_inline
from ctxgc.config.secrets import mask_text, shown
from ctxgc.config.settings import SessionSettings

__all__ = [
    "DEFAULTS",
    "DEFAULT_PLUGIN",
    "NOTICE_FIELDS",
    "ExplainedKey",
    "Explanation",
    "FrozenDict",
    "GCConfig",
    "GCSpec",
    "Profile",
    "SessionSettings",
    "Sifted",
    "check_template",
    "choices",
    "config_schema",
    "environment_warnings",
    "explain_file",
    "find_gc_file",
    "list_profiles",
    "load_config",
    "load_profile",
    "mask_text",
    "origins",
    "parse_inline",
    "parse_spec",
    "read_gc_file",
    "render_notice",
    "shown",
    "sift_file",
    "unknown_key",
]
