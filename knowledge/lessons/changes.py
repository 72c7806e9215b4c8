"""Changes: every rewrite, merge and retirement as a diff with its reason, and the way back."""

from __future__ import annotations

import difflib

from knowledge.log.event_log import Event, EventKind, EventLog
from knowledge.log.fold import REVERTIBLE, Fold
from tools.errors import UserError
from tools.records import Record


class Change(Record):
    """One change to what is known of a strategy, after it was written."""

    change: int
    """Its number in this store, for `revert`."""
    at: str
    kind: str
    """`rewrite`, `merge`, `replace` (a newer seed), `retire` or `revert`."""
    strategy: str
    title: str
    reason: str
    by: str = ""
    """Who rewrote."""
    diff: tuple[str, ...] = ()
    """Lines with `-` and `+`."""
    reverted: bool = False


def changes(log: EventLog, fold: Fold, since: int = 0, strategy: str = "") -> list[Change]:
    """List the changes after event `since`, oldest first, of one strategy or of all."""
    events = log.read(after=since, kinds=(*REVERTIBLE, EventKind.REVERT))
    return [_change(event, fold) for event in events if not strategy or event.subject == strategy]


def revert(log: EventLog, fold: Fold, number: int, reason: str) -> Change:
    """Undo a change, with a reason; the log keeps both."""
    if not reason.strip():
        raise UserError("Reverting a change needs a reason.", "Say why in a few words.")
    with log.writing() as writer:
        fold.follow(log)
        event = next((e for e in log.read(after=number - 1, kinds=REVERTIBLE) if e.seq == number), None)
        if event is None or (event.kind == EventKind.REPLACE and not event.body.get("merge")):
            raise UserError(f"There is no change {number} that can be reverted.", "List the changes with `kernelwright knowledge diff`.")
        if fold.is_undone(number):
            raise UserError(f"Change {number} is reverted already.", "List the changes with `kernelwright knowledge diff`.")
        _only_the_newest(log, fold, event)
        writer.add(EventKind.REVERT, f"revert:{number}", event.subject, {"change": number, "reason": reason})
    fold.follow(log)
    return _change(event, fold)


def _only_the_newest(log: EventLog, fold: Fold, event: Event) -> None:
    """Refuse to take a rewrite from under a later one: its diff would no longer be true."""
    if event.kind != EventKind.REWRITE:
        return
    later = [e.seq for e in log.of(event.subject) if e.kind == EventKind.REWRITE and e.seq > event.seq and not fold.is_undone(e.seq)]
    if later:
        raise UserError(f"Change {event.seq} was rewritten again by change {later[-1]}.", f"Revert change {later[-1]} first.")


def _change(event: Event, fold: Fold) -> Change:
    entry = fold.named(event.subject)
    body = event.body
    kind = "merge" if body.get("merge") else str(event.kind)
    reason = f"{body['reason']} (change {body['change']})" if event.kind == EventKind.REVERT else str(body["reason"])
    return Change(
        change=event.seq,
        at=event.at,
        kind=kind,
        strategy=entry.id if entry else event.subject,
        title=entry.written.title if entry else "",
        reason=reason,
        by=str(body.get("by", "")) if event.kind == EventKind.REWRITE else "",
        diff=tuple(_diff(body)) if event.kind == EventKind.REWRITE else _outcome(event),
        reverted=fold.is_undone(event.seq),
    )


def _outcome(event: Event) -> tuple[str, ...]:
    if event.kind == EventKind.REPLACE:
        return (f"- recalled as {event.subject}", f"+ its trials count for {event.body['by']}")
    return ("- recalled", "+ no longer recalled") if event.kind == EventKind.RETIRE else ()


def _diff(body: dict[str, object]) -> list[str]:
    lines: list[str] = []
    lesson, gain = body.get("lesson"), body.get("expected_gain")
    if isinstance(lesson, list):
        before, after = (_sentences(str(text)) for text in lesson)
        lines += [line for line in difflib.ndiff(before, after) if line[0] in "-+"]
    if isinstance(gain, list):
        lines += [f"{sign} predicted gain: {f'{value:.2f}x' if value else 'none'}" for sign, value in zip("-+", gain, strict=True)]
    return lines


def _sentences(text: str) -> list[str]:
    return text.replace(". ", ".\n").splitlines()
