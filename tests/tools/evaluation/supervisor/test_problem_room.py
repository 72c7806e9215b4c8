"""Which problems may have their tensors on a device side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tools.errors import MachineError
from tools.evaluation.processes.device_lock import DeviceLock
from tools.evaluation.supervisor.case import Steps
from tools.evaluation.supervisor.checking.device_store_client import obstacle
from tools.evaluation.supervisor.problem_room import ProblemRoom
from tools.evaluation.supervisor.timed.baseline_client import BaselineCache
from tools.hardware import load_sheet
from tools.records import Problem


class Pool:
    """A worker pool that keeps as many processes as it is asked to, and runs none."""

    kept = 8
    rested = False
    in_use = kept_meanwhile = ""
    device = 0
    wary = False

    def __init__(self) -> None:
        """Know nothing of the device."""
        self.learnt: dict[str, str] = {}

    def rest(self) -> None:
        """Be told that a problem needs the whole device."""
        self.rested = True
        self.kept_meanwhile = self.in_use

    @contextmanager
    def keeping(self, problem: Problem) -> Iterator[None]:
        """Keep what a problem has."""
        self.in_use = problem.id
        yield
        self.in_use = ""


class Baseline:
    """A baseline process that is only kept and ended."""

    has_ended = False

    def watch(self, cancel: int) -> None:
        """Go on."""

    def settle(self) -> None:
        """Have nothing to take over."""

    def close(self) -> None:
        """Take down that it was ended."""
        self.has_ended = True


@pytest.fixture
def sized(problem: Problem) -> Callable[[str, int], Problem]:
    """Give a problem of a name, with so many times 256 MiB of float32 input."""

    def make(name: str, rows: int) -> Problem:
        large = problem.abi.inputs[0].model_copy(update={"shape": (rows, 1 << 26)})
        abi = problem.abi.model_copy(update={"arguments": (large,)})
        return problem.model_copy(update={"source": f"# {name}\n{problem.source}", "abi": abi})

    return make


def test_kept_baselines_make_room_for_a_large_problem(sized: Callable[[str, int], Problem]) -> None:
    """A problem that comes ends the baselines of others, the one used longest ago first, as far as it needs their memory.

    Beside the largest no other problem's processes wait, either.
    """
    sheet = load_sheet("h100")
    pool: Any = Pool()
    cache = BaselineCache(pool)
    old, new = Baseline(), Baseline()
    kept: dict[str, Any] = {"old": old, "new": new}
    for name, one in kept.items():
        cache.baseline(sized(name, 4), sheet, -1, one)
    room = ProblemRoom(DeviceLock(8), cache)

    def ended() -> list[bool]:
        return [old.has_ended, new.has_ended]

    assert room.beginning(pool, sized("small", 4), sheet, Steps(), ended) == [False, False]
    assert room.beginning(pool, sized("large", 45), sheet, Steps(), ended) == [True, False]
    assert not pool.rested
    larger = sized("larger", 60)
    assert room.beginning(pool, larger, sheet, Steps(), ended) == [True, True]
    assert (pool.rested, pool.kept_meanwhile) == (True, larger.id)


def test_tensors_that_find_no_room_on_the_device_pass_through_the_host(sized: Callable[[str, int], Problem]) -> None:
    """What runs out of memory by itself is tried once more, with its tensors in the host's memory; then it has failed.

    Its baselines, which say so, begin anew.
    """
    sheet, pool = load_sheet("h100"), Pool()
    workers: Any = pool
    pool.learnt["device memory shared"] = ""
    problem, tried = sized("large", 40), list[str]()
    cache, before = BaselineCache(workers), Baseline()
    kept: Any = before
    cache.baseline(problem, sheet, -1, kept)
    room = ProblemRoom(DeviceLock(8), cache)

    def work() -> str:
        tried.append(obstacle(workers, problem, sheet, -1))
        if len(tried) in (1, 3):
            raise MachineError("CUDA out of memory", "Mend it.")
        return "judged"

    assert room.beginning(workers, problem, sheet, Steps(), work) == "judged"
    assert [bool(reason) for reason in tried] == [False, True]
    assert before.has_ended
    with pytest.raises(MachineError):
        room.beginning(workers, problem, sheet, Steps(), work)
    assert len(tried) == 3
