"""Presets: how eager thrift is. The numbers are data, fitted by `ctxgc lab fit` (see docs/lab.md)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from ctxgc.errors import ConfigError

PRICE_FILE = "price.json"

Share = Annotated[float, Meta(ge=0, le=1)]
Weight = Annotated[float, Meta(ge=0)]
Count = Annotated[int, Meta(ge=0)]
Amount = Annotated[float, Meta(ge=0)]


class Shares(msgspec.Struct, frozen=True, array_like=True):
    """How much of a result may stay as verbatim lines, and how much may be spent on bare names."""

    lines: Amount
    names: Amount


class Preset(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All constants of thrift.

    `hold` is how many idle requests a result that shows a file is kept while nothing speaks against it,
    `work_hold` how many any other result is;
    `after_check` and `after_user` count a test run or a user's message since as that many idle
    requests, once `bonus_from` real ones have passed. `patience` is how much of a deep re-write's
    price the dead results must have cost already. `horizon` bounds the requests that are expected to
    come. `guard` is how much dearer than never pruning a session may ever get. `trims_calls` lets the
    agent's own calls be shortened too: the old text of edits that were made, and dead to-do lists.
    `thin_numbers` shows only those line numbers of a new file view that it divides, 0 all of them;
    `groups_hits` shows the path of a file once above the hits of a search in it.
    """

    trims_calls: bool
    thin_numbers: Count = 0
    groups_hits: bool = False
    hold: Count
    work_hold: Count
    after_check: Count
    after_user: Count
    bonus_from: Count
    patience: Amount
    horizon: Count
    guard: Amount
    least_tokens: Count
    least_saving: Amount
    least_names: Count
    word_weight: Amount
    floor: Amount
    copy_lines: Count
    copy_chars: Count
    copy_saving: Amount
    shares: dict[str, Shares]


class Coefficients(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file of constants, and where they come from."""

    provenance: dict[str, str]
    presets: dict[str, Preset]


@cache
def coefficients() -> Coefficients:
    """Return the constants that ship with the package."""
    return msgspec.json.decode(
        files(__package__).joinpath(PRICE_FILE).read_bytes(), type=Coefficients
    )


PRESETS = ("default", "lean", "careful")
PROBATION = 4
"""For how many steps of the agent `proven`, which has the constants of `default`, waits."""


def preset(name: str) -> Preset:
    """Return a preset by its name.

    Raises:
        ConfigError: there is no such preset.
    """
    known = coefficients().presets
    if name not in known:
        raise ConfigError(
            f"there is no preset '{name}'", hint=f"known ones: {', '.join(known)}", field="preset"
        )
    return known[name]


RETIRED = frozenset({"company"})
RETIRED_SHARES = frozenset({"other"})
"""What constants had in older versions: a session that was stored with it goes on without it."""


def custom(constants: Mapping[str, Any]) -> Preset:
    """Return a preset with these constants; what is not given is as in `default`.

    Raises:
        ConfigError: one is unknown or wrong.
    """
    known = msgspec.to_builtins(preset("default"))
    given = {key: value for key, value in constants.items() if key not in RETIRED}
    shares = given.get("shares", {})
    if isinstance(shares, Mapping):
        kept = {kind: value for kind, value in shares.items() if kind not in RETIRED_SHARES}
        given["shares"] = {**known["shares"], **kept}
    try:
        found = msgspec.convert({**known, **given}, Preset)
    except msgspec.ValidationError as error:
        raise _wrong(str(error)) from None
    if unknown := found.shares.keys() - known["shares"].keys():
        raise _wrong(f"`shares` has {', '.join(sorted(unknown))}, which no result is")
    return found


def _wrong(said: str) -> ConfigError:
    return ConfigError(
        f"constants of gc_mark_sweep: {said}",
        hint=f"the constants are {', '.join(Preset.__struct_fields__)}",
        field="constants",
    )


# -- The constants of a window collection: data, fitted by `ctxgc lab fit window`


ROOM_FILE = "room.json"


class WindowConstants(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How room is made in a full window.

    Attributes:
        freeze_share: stubs of earlier collections stay as they are while this share of the target is
            free without them.
        lines_share: the share of the target that lines and names shall have; the oldest groups dissolve
            for it.
        names_share: the share of that room which bare names get.
        least_work_share: what the target grows by, as a share of itself, above what must stay; but
        tight_share: never beyond this share of the window.
        work_margin: the share of the window above the hard limit up to which what is in work stays.
        keep_whole: a stub of more than this share of its original is not worth the loss;
        least_saving: nor is one that saves fewer tokens.
        least_rate: the worth per token below which no line is kept, though there were room.
        used_by_agent: what a name is worth more if the agent used it.
        often: the power of the number of messages that hold a thing; 0 counts each thing once.
        hex_worth: the worth of a long hexadecimal number, where that of another name is 1.
        word_worth: the worth of a plain word that at most `rare_word` messages hold.
        agent_line: the worth of a line that was said by the agent or a user; `view_line` of one out of
            a file, `other_line` of one out of another result, `digest_line` of one that only the digest
            of earlier collections holds.
        value_line: the worth of a line that says a value, apart from code; in each text anew, since the same
            line means something else there. `asked` is what it is worth if a request named what it is about.
        slow: the power of a thing's age that its worth is divided by; `fast` is that of lines which
            only results hold.
    """

    freeze_share: Share
    lines_share: Share
    names_share: Share
    least_work_share: Share
    tight_share: Share
    work_margin: Share
    keep_whole: Share
    least_saving: Annotated[int, Meta(ge=0)]
    least_rate: Weight
    used_by_agent: Weight
    often: Weight
    hex_worth: Weight
    word_worth: Weight
    rare_word: Annotated[int, Meta(ge=0)]
    agent_line: Weight
    view_line: Weight
    other_line: Weight
    digest_line: Weight
    value_line: Weight
    asked: Weight
    slow: Weight
    fast: Weight


class WindowFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file of constants, and where they come from."""

    provenance: dict[str, str]
    constants: WindowConstants


@cache
def window_file() -> WindowFile:
    """Return the file that ships with the package."""
    return msgspec.json.decode(files(__package__).joinpath(ROOM_FILE).read_bytes(), type=WindowFile)


def window_constants() -> WindowConstants:
    """Return the constants that ship with the package."""
    return window_file().constants


# -- Where the reader of a view has no way to recall


WITHOUT_RECALL = 2.0
"""How much more of a text may stay as lines, and how much less each of them need be worth."""

How = TypeVar("How", Preset, WindowConstants)


def larger(share: float) -> float:
    """Return the share of a text that may stay where the rest cannot be recalled."""
    return min(1.0, WITHOUT_RECALL * share)


def without_recall(how: How) -> How:
    """Return constants by which more lines stay, for a view whose reader cannot recall the rest."""
    if isinstance(how, WindowConstants):
        return replace(how, least_rate=how.least_rate / WITHOUT_RECALL)
    shares = {
        kind: Shares(lines=larger(share.lines), names=share.names)
        for kind, share in how.shares.items()
    }
    return replace(how, floor=how.floor / WITHOUT_RECALL, shares=shares)
