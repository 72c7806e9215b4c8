"""What a person asked of a run: as facts, and as lines for a terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from graphs.run.records import Delivery
from graphs.run.steering import STEER, Steer, is_paused, moments
from kernelwright.screen.follow import is_worked_on
from tools.tracing import RunStore

Facts = dict[str, Any]


def steering_facts(store: RunStore) -> Facts:
    """Whether a run is paused, and everything that was asked of it, the oldest first; `force` says from when it counts."""
    when = moments(store)
    asked = [
        {"kind": one.kind, "text": one.text, "at": one.at, "force": "at once" if one.kind in ("pause", "continue") else when.get(name)}
        for name, one in store.all(STEER, Steer).items()
    ]
    return {"run": store.meta("run"), "paused": is_paused(store), "asked": asked}


def steering_lines(store: RunStore) -> Iterator[str]:
    """Say how a run stands, and each thing that was asked with its time."""
    facts = steering_facts(store)
    ended, worked_on = bool(store.all("delivery", Delivery)), is_worked_on(store)
    state = "has ended" if ended else "is paused" if facts["paused"] else "is worked on" if worked_on else "is stopped"
    go_on = "" if ended or worked_on else f"; nobody works on it: kernelwright resume {facts['run']}"
    yield f"{facts['run']} {state}{go_on}"
    for one in facts["asked"]:
        clock = time.strftime("%H:%M:%S", time.localtime(one["at"]))
        force = one["force"] or ("never came into force" if ended else "in force at the next round")
        since = f"in force from {force}" if one["force"] and one["force"] != "at once" else force
        yield f"  {clock} {one['kind']:<8} {one['text'] or '–'} ({since})"
    if not facts["asked"]:
        yield "  Nothing was asked of it."
