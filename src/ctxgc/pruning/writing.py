"""Writing a proposal: the new file, judged before anybody sees it."""

from __future__ import annotations

from ctxgc.errors import PlanError
from ctxgc.pruning.proposal import Proposal
from ctxgc.wire import validate
from ctxgc.wire.transcripts.revision import Revision, Writable
from ctxgc.wire.transcripts.writing import writable


def written(file: Writable, proposal: Proposal, new_id: str | None = None) -> bytes:
    """Return the transcript with a proposal in it.

    It is read again as its agent would read it: the window must hold what the proposal says and break
    no rule that it kept before.

    Raises:
        PlanError: it would not; nothing was written.
    """
    data = file.write(proposal.revision, new_id)
    again = writable(data, name="the pruned transcript")
    wanted = _window_after(file, proposal.revision)
    found = [entry.data for entry in again.entries]
    if found != wanted:
        place = next(
            (n for n, pair in enumerate(zip(found, wanted, strict=False)) if pair[0] != pair[1]), -1
        )
        raise _refused(f"message {place} of {len(wanted)} is not what was planned")
    told, most = (again.usages[-1:], proposal.revision.reported)
    if told and most is not None and told[0].prompt > most:
        raise _refused(f"its newest request is said to take {told[0].prompt} tokens, not {most}")
    before = {v.text for v in validate([e.data for e in file.entries], file.format, complete=False)}
    broken = [v for v in validate(found, file.format, complete=False) if v.text not in before]
    if broken:
        raise _refused(f"{broken[0].text} ({broken[0].promise})")
    return data


def _window_after(file: Writable, revision: Revision) -> list[dict[str, object]]:
    messages: list[dict[str, object]] = []
    for entry in file.entries:
        messages += [addition.data for addition in revision.before(entry.message_id)]
        if entry.message_id not in revision.gone:
            messages.append(revision.edited.get(entry.message_id, entry.data))
    return [*messages, *(addition.data for addition in revision.before(None))]


def _refused(why: str) -> PlanError:
    return PlanError(
        f"the pruned transcript would be wrong: {why}",
        hint="nothing was written; choose another --strategy or --target",
    )
