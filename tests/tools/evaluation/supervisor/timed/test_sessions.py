"""Sessions of one candidate: when their inputs are made."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tools.evaluation.processes.room import Room
from tools.evaluation.supervisor.timed.sessions import Ahead


class Counted:
    """Sessions that count how often their inputs were made."""

    def __init__(self) -> None:
        self.prepared = 0

    def prepare(self) -> None:
        """Count."""
        self.prepared += 1


def prepared(room: Room, share: float, *, times: int = 1) -> tuple[bool, int]:
    """Have the inputs of a candidate made in a room, and say whether there was enough, and how often they were made."""
    sessions: Any = Counted()
    with Ahead(room, share, sessions) as ahead:
        for _ in range(times):
            ahead.prepare()
        return ahead.has_room, sessions.prepared


def test_who_waits_to_be_checked_takes_no_room_for_its_inputs() -> None:
    """Room is taken when the inputs are made, once for a candidate however often it was checked, and given back at its end."""
    room, waiting = Room(1.0), Ahead(Room(1.0), 1.0, SimpleNamespace())
    with waiting:
        assert not waiting.has_room
    assert [prepared(room, 0.75, times=2) for _ in range(2)] == [(True, 2)] * 2


def test_who_finds_no_room_has_its_inputs_made_alone() -> None:
    """Nothing is made ahead for a candidate whose inputs have no room beside those of others."""
    room = Room(1.0)
    with room.taken(0.5):
        assert prepared(room, 0.75) == (False, 0)
