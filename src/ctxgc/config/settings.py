"""What the environment says about a session, beside its GCConfig."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from ctxgc.config.environment import environment_values
from ctxgc.config.secrets import mask_text


class SessionSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`CTXGC_PLUGIN`, `CTXGC_STORE`, `CTXGC_CONTEXT_LIMIT`, `CTXGC_PRICES`; None where unset."""

    plugin: str | None = None
    store: str | None = None
    context_limit: Annotated[int, Meta(ge=1)] | None = None
    prices: str | None = None

    @classmethod
    def from_env(cls, env: Mapping[str, str] | None = None) -> SessionSettings:
        """Return what the environment sets.

        Raises:
            ConfigError: `CTXGC_CONTEXT_LIMIT` is not a positive whole number.
        """
        return cls(**environment_values(cls, env))

    def __repr__(self) -> str:
        values = msgspec.structs.asdict(self).items()
        return f"SessionSettings({', '.join(f'{k}={mask_text(str(v))}' for k, v in values)})"
