"""The words of the page: what the columns mean, and what they do not."""

from __future__ import annotations

from collections.abc import Sequence

DEFINITIONS = (
    (
        "bill: what all requests cost, as a share of never pruning; a prefix that is the same as in the "
        "last request is read from the cache, the rest is written. Confidence intervals are drawn over "
        "groups of runs."
    ),
    "worst: the bill of the single dearest run.",
    (
        "strict: steps all of whose needs still stood in the view with their surroundings; clean: they "
        "stood there, or were at least named. Only steps with a need count."
    ),
    (
        "line-step and word are checks outside of what policies aim at: steps whose quoted lines all still "
        "stood in the view, and rare plain words that did."
    ),
    "wide: needs that are resident when the surroundings may reach over line ends.",
    "wrong: invalid histories and requests over the limit, added; Soundness tells them apart.",
)

MEASURES = (
    (
        "Recorded runs are replayed request by request. A policy sees the history so far and returns what "
        "it would send; that is priced with prompt caching, and checked for rules that providers enforce."
    ),
    (
        "A need is an identifier-like fact (a path, a symbol, an id, a number of four digits or more) that "
        "the agent's next message uses, that occurred before, and that stands neither in the head nor in "
        "the last two messages."
    ),
    (
        "A need is resident if it stands in the view with the 24 characters before and after it, named if "
        "only the bare fact does, recallable if it is behind a live handle that the view shows, else lost."
    ),
)

IS_NOT = (
    (
        "It is open loop: the recorded agent goes on as it did, whatever was pruned. Confusion, detours and "
        "repeated reads that pruning would cause are not seen, nor is what a recall costs."
    ),
    (
        "It is a lexical proxy: text that is used again may be there by coincidence, and text that is never "
        "quoted may still have steered the model."
    ),
    "It says nothing about whether a task succeeds. No model is asked.",
    (
        "Recorded runs often lack the system prompt and the tool schemas; with them cached in front, every "
        "saving is a smaller share of the bill."
    ),
    (
        "Cache breakpoints are taken as perfect, and tokens are counted as the lab counts them, not as a "
        "provider's invoice does."
    ),
)

KINDS = {
    "ours": "the public Session of ctxgc, driven as an agent would drive it",
    "peer": "another library's own package, in an environment of its own, with the settings shown",
    "restated": "a published rule, written again for the lab by us; not its authors' code",
    "oracle": "a clairvoyant that knows the future: a bound to compare with, not a policy",
    "base": "the whole history with every request",
}


def caption_of_front(beyond: Sequence[tuple[str, float, float]]) -> str:
    """Return the caption of the chart of bills, which names who is too dear to be drawn."""
    said = (
        "Up and to the left is better. The dotted line joins the policies that no other beats on both; "
        "rings do not count: clairvoyants, and policies with more than one request in a hundred that is "
        "invalid or over the limit. Crosses are 95% confidence intervals."
    )
    if not beyond:
        return said
    names = ", ".join(f"{name} (bill {bill:.2f}, {100 * kept:.1f}%)" for name, bill, kept in beyond)
    return f"{said} Too dear for the frame: {names}."
