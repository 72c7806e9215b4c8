"""Whose tensors may be on the device."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from tools.errors import MachineError
from tools.evaluation.processes.tensor_room import PRECEDENCE_S, TensorRoom, in_words, ran_out

FULL = MachineError("The inputs could not be made: torch.OutOfMemoryError: CUDA out of memory.", "Check the device.")


class Clock:
    """A clock that is set by hand."""

    now = 0.0

    def __call__(self) -> float:
        """Say what it was set to."""
        return self.now


def waits(one: Future[None]) -> bool:
    """Whether it has not come in by now."""
    time.sleep(0.05)
    return not one.done()


def test_shares_add_up_to_what_there_is() -> None:
    """Those inside hold no more than there is together, and one that is larger than all of it stays by itself."""
    room, lock, present, most = TensorRoom(0.6), threading.Lock(), [], []

    def work(share: float) -> None:
        with room.taken(share):
            with lock:
                present.append(share)
                most.append(sum(present) if len(present) > 1 else 0.0)
            time.sleep(0.02)
            with lock:
                present.remove(share)

    with ThreadPoolExecutor(8) as threads:
        for job in [threads.submit(work, share) for share in (0.3, 1.9, 0.3, 0.1, 0.3, 0.1, 1.9, 0.2)]:
            job.result()

    assert 0.3 <= max(most) <= 0.6 + 1e-9


def test_a_large_one_is_passed_for_a_minute_and_no_longer() -> None:
    """What is small goes past one that has no room yet; who comes a minute after that one waits behind it."""
    clock = Clock()
    room, leave, entered = TensorRoom(1.0, clock), threading.Event(), threading.Event()

    def stay() -> None:
        with room.taken(0.5):
            entered.set()
            leave.wait(10)

    def pass_through(share: float) -> None:
        with room.taken(share):
            pass

    with ThreadPoolExecutor(4) as threads:
        threads.submit(stay)
        entered.wait(10)
        large = threads.submit(pass_through, 0.9)
        assert waits(large)
        threads.submit(pass_through, 0.1).result(10)
        clock.now = PRECEDENCE_S + 1
        small = threads.submit(pass_through, 0.1)
        assert waits(small)
        leave.set()
        large.result(10)
        small.result(10)


def beside_another(work: Callable[[], str], clear: Callable[[], None], doubted: Callable[[str], bool] = lambda _: False) -> str:
    """Do something while another holds its tensors, who leaves a moment later."""
    room, leave, entered = TensorRoom(1.0), threading.Event(), threading.Event()

    def stay() -> None:
        with room.taken(0.1):
            entered.set()
            leave.wait(10)

    def first_leaves() -> str:
        leave.set()
        return work()

    with ThreadPoolExecutor(1) as threads:
        threads.submit(stay)
        entered.wait(10)
        return room.beside(0.1, first_leaves, clear=clear, doubted=doubted)


def test_what_ran_out_beside_another_is_done_again_alone() -> None:
    """An error of memory, and a result that is doubted, count for nothing beside another: what is kept is cleared away first."""
    for raises in (True, False):
        found: list[str] = []

        def work(raises: bool = raises, found: list[str] = found) -> str:
            found.append("work")
            if raises and len(found) == 1:
                raise FULL
            return "full" if len(found) == 1 else "right"

        assert beside_another(work, lambda found=found: found.append("clear"), lambda result: result == "full") == "right"
        assert found == ["work", "clear", "work"]


def test_other_failures_are_not_repeated() -> None:
    """What fails for another reason, or with nobody else there, has failed."""

    def broken() -> str:
        raise MachineError("The reference fails on this device: ValueError: no.", "Run it.")

    def full() -> str:
        raise FULL

    with pytest.raises(MachineError, match="ValueError"):
        beside_another(broken, lambda: pytest.fail("it was repeated"))
    with pytest.raises(MachineError, match="out of memory"):
        TensorRoom(1.0).beside(0.1, full, clear=lambda: pytest.fail("it was repeated"))


def test_an_error_of_memory_is_told_as_one() -> None:
    """PyTorch's assertion about NVML, with which the error of a forked process ends, is said as what it is; others stay as they are."""
    asserted = 'RuntimeError: NVML_SUCCESS == DriverAPI::get()->nvmlInit_v2_() INTERNAL ASSERT FAILED at "CUDACachingAllocator.cpp":1135'
    assert in_words(asserted) == "CUDA out of memory"
    plain = "RuntimeError: CUDA out of memory. Tried to allocate 8 GiB"
    assert in_words(plain) == plain
    assert ran_out("", asserted)
    assert ran_out("The oracle failed: orch but unallocated. If that is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True")
    assert not ran_out("RuntimeError: illegal memory access")
    assert in_words("RuntimeError: illegal memory access") == "RuntimeError: illegal memory access"
