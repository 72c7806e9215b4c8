"""What a person asked of a run takes effect here, at the beginning of a round: waiting while it is paused, then hints, vetoes and pins."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from agents.planner.builtin import BuiltinPlanner
from graphs.run.context import Services
from graphs.run.steering import Steer, is_paused, take

EVERY_S = 0.5
"""Between two looks whether a paused run goes on."""
UNREAD = "planner and coder are built-in and read no hints, so it changes nothing"


async def steered(services: Services, round_: int, say: Callable[[dict[str, Any]], None]) -> list[Steer]:
    """Wait while the run is paused; then say and return what comes into force with this round."""
    await _unpaused(services, say)
    asked = take(services.store, f"round {round_}")
    for one in asked:
        say({"event": "steered", "said": in_words(services, one)})
    return asked


async def _unpaused(services: Services, say: Callable[[dict[str, Any]], None]) -> None:
    """Wait until nobody wants the run to; the time is not counted as the run's."""
    store = services.store
    if not is_paused(store):
        return
    store.close_session()
    say({"event": "paused"})
    # whoever ends the pause is another process, and says so in the record
    while is_paused(store):  # noqa: ASYNC110 - no event reaches across processes
        await asyncio.sleep(EVERY_S)
    store.open_session()
    say({"event": "continued"})


def in_words(services: Services, asked: Steer) -> str:
    """Say what comes into force, and of a hint whether anybody reads it."""
    if asked.kind == "hint":
        unread = isinstance(services.team.planner, BuiltinPlanner) and not services.team.coder.free
        return f"hint: {asked.text}" + (f" ({UNREAD})" if unread else "")
    if asked.kind == "pin":
        return f"pinned: this round works on {asked.text}"
    known = services.store.candidate(asked.text)
    return f"vetoed: {asked.text} is worked on no more" if known or asked.text == "root" else f"vetoed: the step of plan {asked.text}"
