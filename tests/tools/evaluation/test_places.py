"""Who is judged next where all places are taken."""

from __future__ import annotations

import asyncio

import pytest

from tools.evaluation.places import PRECEDENCE_S, Places


class Played:
    """One place, and evaluations that come and go as the test says."""

    def __init__(self) -> None:
        self.now = 0.0
        self.places = Places(1, lambda: self.now)
        self.order: list[str] = []

    def come(self, problem: str, name: str, release: asyncio.Event) -> asyncio.Task[None]:
        """Ask for the place, and hold it until it is released."""

        async def hold() -> None:
            async with self.places.taken(problem):
                self.order.append(name)
                await release.wait()

        return asyncio.create_task(hold())

    async def played(self, *coming: tuple[float, str, str]) -> list[str]:
        """Have evaluations come at moments while one other is judged; give the order in which they got the place."""
        first, others = asyncio.Event(), asyncio.Event()
        others.set()
        tasks = [self.come("none", "first", first)]
        await asyncio.sleep(0)
        for moment, problem, name in coming:
            self.now = moment
            tasks.append(self.come(problem, name, others))
            await asyncio.sleep(0)
        first.set()
        await asyncio.gather(*tasks)
        return self.order[1:]


async def test_the_problem_that_was_begun_first_goes_first() -> None:
    """A later candidate of it overtakes those of problems begun after it, so that one problem after the other ends."""
    played = Played()
    played.places.hear_of("old")
    assert await played.played((1.0, "new", "new 1"), (2.0, "old", "old 1"), (3.0, "new", "new 2")) == ["old 1", "new 1", "new 2"]


async def test_nobody_is_overtaken_for_ever() -> None:
    """What has waited so much longer than another goes first."""
    played = Played()
    played.places.hear_of("old")
    late = 2.0 + PRECEDENCE_S
    assert await played.played((1.0, "new", "patient"), (late, "old", "late"), (late, "newer", "last")) == ["patient", "late", "last"]


async def test_who_gives_up_leaves_no_hole() -> None:
    """A cancelled wait costs no place, and neither does one that is cancelled as its turn comes."""
    places = Places(1)
    inside, release = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        async with places.taken("a"):
            inside.set()
            await release.wait()

    async def wait() -> None:
        async with places.taken("b"):
            pass

    holder = asyncio.create_task(hold())
    await inside.wait()
    waiting = [asyncio.create_task(wait()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    release.set()
    await holder
    # its turn has come, and it has not heard of it
    waiting[1].cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting[1]
    await asyncio.wait_for(waiting[2], 5)
    await asyncio.wait_for(wait(), 5)


async def test_a_place_may_be_left_before_the_end() -> None:
    """Who has been timed lets the next one in, once, though it is not done."""
    places, inside = Places(1), []

    async def come(name: str) -> None:
        async with places.taken(name):
            inside.append(name)

    async with places.taken("first") as place:
        assert place.waited_s < 1
        waiting = [asyncio.create_task(come(name)) for name in ("second", "third")]
        await asyncio.sleep(0)
        await asyncio.to_thread(place.leave)
        await asyncio.wait_for(asyncio.gather(*waiting), 5)
        place.leave()
        assert inside == ["second", "third"]
    async with places.taken("fourth"):
        late = asyncio.create_task(come("fifth"))
        await asyncio.sleep(0.01)
        assert "fifth" not in inside
    await asyncio.wait_for(late, 5)
