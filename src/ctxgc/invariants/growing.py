"""The groups of a history that grows at its end, kept up message by message."""

from __future__ import annotations

from collections.abc import Iterable

from ctxgc.core.message import Message
from ctxgc.invariants.groups import followings, groups, join
from ctxgc.invariants.pairs import Matcher, Paired


class Growing:
    """A history, its pairing and its groups.

    In OpenAI's chat a message is bound to earlier ones only, so that nothing is looked at twice. Other
    formats are looked at as a whole when somebody asks.
    """

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._messages: list[Message] = []
        self._matcher = Matcher()
        self._leaders: list[int] = []
        self._is_chat = True
        self._found: tuple[Paired, list[tuple[int, ...]]] | None = None
        for message in messages:
            self.add(message)

    def __len__(self) -> int:
        return len(self._messages)

    def is_of(self, messages: list[Message]) -> bool:
        """Tell whether this is the growing of these messages."""
        return self._messages == messages

    def add(self, message: Message) -> None:
        """Put a message at the end."""
        self._found = None
        self._messages.append(message)
        self._is_chat = self._is_chat and message.format == "openai"
        if not self._is_chat:
            return
        place = len(self._leaders)
        self._leaders.append(place)
        for batch in self._matcher.take(message):
            join(self._leaders, batch.first, place)

    @property
    def paired(self) -> Paired:
        """The history as it is now, its calls and results matched."""
        return self._look()[0]

    @property
    def groups(self) -> list[tuple[int, ...]]:
        """The groups of the history, oldest first."""
        return self._look()[1]

    def _look(self) -> tuple[Paired, list[tuple[int, ...]]]:
        if self._found is None:
            paired = Paired(self._messages)
            if self._is_chat and not self._matcher.pairing.has_server_tools:
                paired.pairing = self._matcher.pairing
                self._found = paired, followings(self._leaders)
            else:
                self._found = paired, sorted(groups(paired))
        return self._found
