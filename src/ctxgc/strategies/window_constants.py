"""The constants of a window collection. They are data, fitted by `ctxgc lab fit window` (docs/lab.md)."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Annotated

import msgspec
from msgspec import Meta

FILE = "window_constants.json"

Share = Annotated[float, Meta(ge=0, le=1)]
Weight = Annotated[float, Meta(ge=0)]


class WindowConstants(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How room is made in a full window.

    Attributes:
        freeze_share: stubs of earlier collections stay as they are while this share of the target is
            free without them.
        lines_share: the share of the target that lines and names shall have; the oldest groups dissolve
            for it.
        names_share: the share of that room which bare names get.
        work_share: what the target grows by, as a share of itself, above what must stay; but
        most_share: never beyond this share of the window.
        least_work_share: the same for a window that what must stay almost fills; but
        tight_share: never beyond this share of the window.
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
        slow: the power of a thing's age that its worth is divided by; `fast` is that of lines which
            only results hold.
    """

    freeze_share: Share
    lines_share: Share
    names_share: Share
    work_share: Share
    most_share: Share
    least_work_share: Share
    tight_share: Share
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
    slow: Weight
    fast: Weight


class WindowFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file of constants, and where they come from."""

    provenance: dict[str, str]
    constants: WindowConstants


@cache
def window_file() -> WindowFile:
    """Return the file that ships with the package."""
    return msgspec.json.decode(files(__package__).joinpath(FILE).read_bytes(), type=WindowFile)


def window_constants() -> WindowConstants:
    """Return the constants that ship with the package."""
    return window_file().constants
