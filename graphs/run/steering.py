"""Steering a run while it works: what a person asked of it, kept in its record, and in force from a round's beginning on."""

from __future__ import annotations

import secrets
import time
from typing import Literal

from graphs.run.records import Delivery
from graphs.search.protocol import Ask, Told
from tools.errors import UserError
from tools.records import ROOT, Evaluation, Plan, Record, Verdict
from tools.tracing import RunStore

STEER, TAKEN, DUE = "steer", "steering", "steering_due"
"""Kinds of records: what was asked; what came into force when; and in a repetition, what is to come into force when."""
END = "the end"
"""The last moment at which something comes into force: before the best are confirmed. The others are `round 1`, `round 2`, …"""
Kind = Literal["pause", "continue", "hint", "veto", "pin"]
LONGEST = 1000
"""Characters of a hint."""


class Steer(Record):
    """One thing that a person asked of a run."""

    kind: Kind
    text: str = ""
    """The hint, or the id of a candidate or plan."""
    at: float
    """When, seconds since the epoch."""


class Taken(Record):
    """What came into force at one moment."""

    names: tuple[str, ...]
    """Names of the records."""


def steer(store: RunStore, kind: Kind, text: str = "") -> Steer:
    """Ask something of a run; UserError where it has ended, or knows nothing of that name."""
    if store.all("delivery", Delivery):
        what = f"The run {store.meta('run')} has ended and cannot be steered."
        raise UserError(what, f"Begin a new one at any of its candidates: kernelwright fork {store.meta('run')}.")
    if kind in ("pause", "continue") and is_paused(store) == (kind == "pause"):
        state = "is paused already" if kind == "pause" else "is not paused"
        raise UserError(f"The run {store.meta('run')} {state}.", f"See how it stands: kernelwright steer {store.meta('run')}.")
    named = {"hint": _worded, "veto": _vetoable, "pin": _pinnable}.get(kind)
    asked = Steer(kind=kind, text=named(store, text) if named else "", at=time.time())
    store.put(STEER, f"{asked.at:.6f}-{secrets.token_hex(2)}", asked)
    return asked


def is_paused(store: RunStore) -> bool:
    """Whether a run is to wait at the beginning of its next round."""
    return next((one.kind == "pause" for one in reversed(_asked(store).values()) if one.kind in ("pause", "continue")), False)


def take(store: RunStore, when: str) -> list[Steer]:
    """Put in force what was asked since it was last done, and return it; for the same moment, such as `round 3`, the same again."""
    known = store.get(TAKEN, when, Taken)
    if known is None:
        known = Taken(names=_fresh(store, when))
        if known.names:
            store.put(TAKEN, when, known)
    return [one for name in known.names if (one := store.get(STEER, name, Steer))]


def moments(store: RunStore) -> dict[str, str]:
    """The moment from which each thing asked is in force, by its record's name."""
    return {name: when for when, taken in store.all(TAKEN, Taken).items() for name in taken.names}


def hints(store: RunStore) -> tuple[str, ...]:
    """Hints in force, the oldest first."""
    return tuple(one.text for one in _in_force(store) if one.kind == "hint")


def is_vetoed(store: RunStore, candidate: str) -> bool:
    """Whether a candidate is neither to be worked on nor delivered any more."""
    return any(one.kind == "veto" and one.text == candidate for one in _in_force(store))


def vetoed_actions(store: RunStore) -> set[str]:
    """Ids of actions that are not to be tried again, on whatever parent."""
    plans = (store.get("plan", one.text, Plan) for one in _in_force(store) if one.kind == "veto")
    return {plan.action.id for plan in plans if plan is not None}


def pinned_asks(asked: list[Steer], batch: int) -> tuple[Ask, ...]:
    """What is asked for in the place of the search method: the candidates pinned for this round share its plans."""
    names = list(dict.fromkeys(one.text for one in asked if one.kind == "pin"))[:batch]
    share, rest = divmod(batch, len(names)) if names else (0, 0)
    return tuple(Ask(parent=name, plans=share + (place < rest)) for place, name in enumerate(names))


def closings(asked: list[Steer]) -> list[Told]:
    """What a search method is told of vetoed candidates: that nothing is left to try on them."""
    return [Told(parent=one.text) for one in asked if one.kind == "veto"]


def _asked(store: RunStore) -> dict[str, Steer]:
    return store.all(STEER, Steer)


def _fresh(store: RunStore, when: str) -> tuple[str, ...]:
    if store.names(DUE):
        due = store.get(DUE, when, Taken)
        return due.names if due else ()
    done = moments(store)
    return tuple(name for name, one in _asked(store).items() if name not in done and one.kind not in ("pause", "continue"))


def _in_force(store: RunStore) -> list[Steer]:
    done = moments(store)
    return [one for name, one in _asked(store).items() if name in done]


def _worded(store: RunStore, text: str) -> str:
    words = " ".join(text.split())
    if not 0 < len(words) <= LONGEST:
        raise UserError(f"A hint has 1 to {LONGEST} characters, and this one {len(words)}.", "Say it in a few sentences.")
    return words


def _vetoable(store: RunStore, prefix: str) -> str:
    return _named(store, prefix, ("candidate", "plan"))


def _pinnable(store: RunStore, prefix: str) -> str:
    name = _named(store, prefix, ("candidate",))
    judged = next(iter(store.all("evaluation", Evaluation, subject=name).values()), None)
    if name != ROOT and (judged is None or judged.verdict is not Verdict.PASS):
        ended = f"ended {judged.verdict}" if judged else "was not judged yet"
        raise UserError(f"The candidate {name} {ended}: only a right one can be worked on.", "Pin another.")
    if any(one.kind == "veto" and one.text == name for one in _asked(store).values()):
        raise UserError(f"The candidate {name} was vetoed.", "Pin another.")
    return name


def _named(store: RunStore, prefix: str, kinds: tuple[str, ...]) -> str:
    """The one id of these kinds that begins so; `root` is the reference."""
    found = {ROOT} if prefix == ROOT else {name for kind in kinds for name in store.names(kind) if prefix and name.startswith(prefix)}
    if len(found) != 1:
        what = f"{len(found)} ids of {' or '.join(f'{kind}s' for kind in kinds)} of this run start with {prefix!r}."
        raise UserError(what, f"Take one from: kernelwright trace {store.meta('run')} --verbose, or --json.")
    return found.pop()
