"""The frame of the built-in strategies: options, triggers, result and notice; each adds its `shrink`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import copy
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from ctxgc.budget import InstructionBudget
from ctxgc.collector import (
    OLD_NOTICE,
    Bindable,
    CollectionRun,
    GCResult,
    GCTriggerReason,
    Host,
)
from ctxgc.config import GCConfig, check_template, choices, in_words, render_notice, unknown_key
from ctxgc.core import Message, note, search_call
from ctxgc.errors import ConfigError
from ctxgc.strategies.base import GCPlugin
from ctxgc.wire import text_message

_DEFAULT_NOTICE = note(
    "{items_collected} older messages were moved out of the context, {tokens_freed} tokens"
)


class StrategyOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options that a plugin takes in `initialize`; None leaves the choice to GCConfig."""

    preserve_recent_turns: Annotated[int, Meta(ge=0)] | None = None
    notify_on_gc: bool | None = None
    notification_template: str | None = None


def serving(plugin: GCPlugin, host: Host) -> GCPlugin:
    """Return a strategy at work for a session: a copy, while the one given works for another."""
    if isinstance(plugin, BuiltinStrategy) and plugin.serves_another(host):
        plugin = copy(plugin)
    if isinstance(plugin, Bindable):
        plugin.bind(host)
    return plugin


class BuiltinStrategy(ABC):
    """A built-in strategy. Subclasses say how to shrink a history."""

    name: ClassVar[str]
    options: ClassVar[type[StrategyOptions]] = StrategyOptions

    def __init__(self) -> None:
        self._options = self.options()
        self._host = Host()

    def initialize(self, config: dict[str, Any] | None = None) -> None:
        """Take options; what is not given comes from GCConfig.

        Raises:
            ConfigError: an option is unknown or of the wrong kind.
        """
        given = dict(config or {})
        for key in given:
            if key not in self.options.__struct_fields__:
                raise self._unknown_option(key)
        try:
            self._options = msgspec.convert(given, self.options)
        except msgspec.ValidationError as error:
            key = str(error).rpartition("$.")[2].strip("`")
            raise ConfigError(
                f'option "{key}" of {self.name} {in_words(str(error))}',
                hint=choices(str(error), self.options),
                key="plugin_config",
            ) from None
        if self._options.notification_template is not None:
            check_template(self._options.notification_template)

    def _unknown_option(self, key: str) -> ConfigError:
        if key == "summarizer":
            return ConfigError(
                f"{self.name} does not summarize, so it takes no summarizer",
                hint="use gc_summarize or gc_hybrid, or leave the summarizer out",
                key="plugin_config",
            )
        error = unknown_key(key, self.options.__struct_fields__, f"option of {self.name}")
        error.details["key"] = "plugin_config"
        return error

    def shutdown(self) -> None:
        """Release the session."""
        self._host = Host()

    def bind(self, host: Host) -> None:
        """Work with the services of a session."""
        self._host = host

    def serves_another(self, host: Host) -> bool:
        """Return whether it works for another session."""
        return self._host is not host and type(self._host) is not Host

    def should_collect(
        self, context_usage: Mapping[str, Any], config: GCConfig
    ) -> tuple[bool, GCTriggerReason | None]:
        """Return whether the threshold or the limit of turns is reached."""
        if config.max_turns is not None and context_usage.get("turns", 0) > config.max_turns:
            return True, GCTriggerReason.TURN_LIMIT
        percent = context_usage.get("percent_used", 0.0)
        above_target = config.continuous and percent > config.target_percent
        due = above_target or (not config.continuous and percent >= config.threshold_percent)
        return due, GCTriggerReason.THRESHOLD if due else None

    def collect(
        self,
        history: list[Message],
        context_usage: Mapping[str, Any],
        config: GCConfig,
        reason: GCTriggerReason,
        budget: InstructionBudget | None = None,
    ) -> tuple[list[Message], GCResult]:
        """Return the new history and what was done; `history` itself is not changed."""
        run = CollectionRun(
            history,
            usage=context_usage,
            config=config,
            reason=reason,
            budget=budget,
            host=self._host,
            preserve=self._preserved(config),
        )
        before = run.draft.tokens
        if run.is_due():
            self.clear_notices(run)
            self.shrink(run)
            run.forget_vain_work()
        return self._finish(run, before)

    @abstractmethod
    def shrink(self, run: CollectionRun) -> None:
        """Take messages out of the draft, or make them smaller, until the target is met."""

    def clear_notices(self, run: CollectionRun) -> None:
        """Take out the notices of earlier collections."""
        run.draft.remove_all([m.message_id for m in run.old_notices()], OLD_NOTICE, "old_notice")

    def _preserved(self, config: GCConfig) -> int:
        own = self._options.preserve_recent_turns
        return config.preserve_recent_turns if own is None else own

    def _notifies(self, config: GCConfig) -> bool:
        own = self._options.notify_on_gc
        return config.notify_on_gc if own is None else own

    def _finish(self, run: CollectionRun, before: int) -> tuple[list[Message], GCResult]:
        draft = run.draft
        items = draft.items()
        result = GCResult(
            success=True,
            items_collected=len(items),
            tokens_before=before,
            tokens_after=draft.tokens,
            plugin_name=self.name,
            trigger_reason=run.reason,
            details=run.details,
            removal_list=items,
        )
        if run.left() or run.digest:
            self._notify(run, result)
        result.tokens_after = draft.tokens
        result.shortfall = max(0, draft.tokens - run.target) if run.is_due_by_size else 0
        return draft.history(), result

    def _notify(self, run: CollectionRun, result: GCResult) -> None:
        """Leave a note where the first message left, unless it costs more than was saved or the target."""
        template = self._options.notification_template or run.config.notification_template
        text = render_notice(
            template or _DEFAULT_NOTICE,
            items_collected=len(run.left()),
            tokens_before=result.tokens_before,
            tokens_after=result.tokens_after,
            tokens_freed=result.tokens_freed,
            plugin_name=self.name,
            reason=run.reason.value,
        )
        if template is None and (search := search_call(self._host.recall_call or "")):
            text = f"{text[:-1]}; {search} finds them again]"
        if not self._notifies(run.config):
            return
        result.notification = text
        said = f"{text}\n{run.digest}" if run.digest else text
        notice = text_message("user", said, run.format, run.notice_id(), "gc_notice")
        cost, room = self._host.message_tokens(notice), run.target - run.draft.tokens
        # Schemas and enrichment go alongside the history, which may not grow by what they freed.
        alongside = sum(i.tokens_freed for i in result.removal_list if not i.message_ids)
        if cost < result.tokens_freed - alongside and (run.digest or not 0 <= room < cost):
            first = run.draft.removed()[0].message_id
            run.draft.insert(notice, before=run.place_near(first))
