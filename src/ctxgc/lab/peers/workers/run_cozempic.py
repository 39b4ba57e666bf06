"""cozempic's prescriptions, as its guard gives them: by how full the window is, on a session's lines.

What was pruned stays pruned. The guard looks every half minute; here it looks before each request.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from shared import from_blocks, serve, to_blocks  # type: ignore[import-not-found]  # in this folder

Json = dict[str, Any]
Line = tuple[int, Json, int]


class CozempicSession:
    """The lines of one session, and what of them was never recorded."""

    def __init__(self, window: int) -> None:
        self.lines: list[Line] = []
        self.known = 0
        self._tokens = import_module("cozempic.tokens")
        self._helpers = import_module("cozempic.helpers")
        self._run = import_module("cozempic.executor").run_prescription
        self._refused = import_module("cozempic.safety").PruneValidationError
        self._prescriptions = import_module("cozempic.registry").PRESCRIPTIONS
        import_module("cozempic.strategies")
        _, self._hard, self._harder = self._tokens.default_token_thresholds_4tier(window)

    def add(self, history: list[Json]) -> None:
        """Append what is new to the session's lines."""
        for number in range(self.known, len(history)):
            line = _line(number, history[number])
            self.lines.append((number, line, self._helpers.msg_bytes(line)))
        self.known = len(history)

    def prune(self) -> None:
        """Give the prescription that the size asks for."""
        size = self._tokens.estimate_session_tokens(self.lines).total
        if size >= self._hard:
            self._give("aggressive" if size >= self._harder else "standard")

    def _give(self, name: str) -> None:
        try:
            self.lines, _ = self._run(self.lines, self._prescriptions[name], {})
        except self._refused:
            return  # its guard keeps the old lines then


def begin(settings: Json) -> Any:
    """Return a function that edits a history."""
    session = CozempicSession(settings["context_window"])

    def edit(history: list[Json]) -> list[Any]:
        session.add(history)
        session.prune()
        return [_entry(line, number, history[number]) for number, line, _ in session.lines]

    return edit


def _line(number: int, message: Json) -> Json:
    kind = "assistant" if message["role"] == "assistant" else "user"
    line: Json = {"type": kind, "uuid": f"m{number}", "message": to_blocks(message)}
    if number:
        line["parentUuid"] = f"m{number - 1}"
    return line


def _entry(line: Json, number: int, original: Json) -> Any:
    blocks = line["message"]["content"]
    return number if blocks == to_blocks(original)["content"] else from_blocks(blocks, original)


if __name__ == "__main__":
    serve(begin)
