"""Room that nobody waits for."""

from __future__ import annotations

import pytest

from tools.evaluation.processes.room import Room


def _fail_in(room: Room) -> None:
    with room.taken(1.0):
        raise ValueError("any")


def test_who_finds_no_room_does_without() -> None:
    """What is taken comes back when it is not needed any more, after a failure too, and what was not taken does not."""
    room = Room(1.0)
    with room.taken(0.75) as first, room.taken(0.5) as second:
        assert (first, second) == (True, False)
    with pytest.raises(ValueError, match="any"):
        _fail_in(room)
    with room.taken(1.0) as whole, room.taken(0.0) as nothing:
        assert whole
        assert nothing
