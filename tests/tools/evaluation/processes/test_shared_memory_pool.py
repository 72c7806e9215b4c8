"""Shared memory, and the pool it waits in."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tools.evaluation.processes.shared_memory_pool import SharedMemoryPool
from tools.evaluation.processes.worker_pool import WorkerPool
from tools.evaluation.sandbox.control_group import memory_bytes
from tools.evaluation.supervisor.checking.device_store_client import DeviceStoreClient, held
from tools.evaluation.wire.calls import CallPlan, CallSpec
from tools.evaluation.wire.memory import Memory
from tools.evaluation.wire.tensor_store import HostStore
from tools.hardware import load_sheet
from tools.records import Problem

SIZE = 3 << 20


def is_open(descriptor: int) -> bool:
    """Whether the descriptor still names anything."""
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


@pytest.mark.parametrize("place", [0, (1 << 20) - 1, 1 << 20, SIZE - 1])
def test_one_byte_of_difference_is_seen(place: int) -> None:
    """Bytes are compared to the last, at the borders of pieces too."""
    memory = Memory(SIZE + 8)
    other = np.zeros(SIZE, dtype=np.uint8)
    assert memory.equals(other, 8)
    other[place] = 1
    assert not memory.equals(other, 8)
    memory.close()


def test_memory_put_back_is_given_to_the_next_that_it_fits() -> None:
    """The same pages serve again for as much or somewhat less, the tightest first; more, and much less, get new ones."""
    pool = SharedMemoryPool(lambda: SIZE, least=0)
    first, large = pool.take(4096), pool.take(16384)
    first.bytes_at(0, 4096)[:] = 7
    pool.put(large)
    pool.put(first)

    more, same, less, little = pool.take(32768), pool.take(4000), pool.take(8192), pool.take(512)

    assert same is first
    assert same.bytes_at(0, 4096)[0] == 7
    assert less is large
    assert {more, little}.isdisjoint({first, large})
    for memory in (more, same, less, little):
        memory.close()


def test_what_is_too_much_goes_back_to_the_system() -> None:
    """The memory that has waited longest is given up first, and all of it at the end, whatever comes back later."""
    pool = SharedMemoryPool(lambda: SIZE, least=0)
    made = [pool.take(SIZE // 2) for _ in range(3)]
    for memory in made:
        pool.put(memory)
    assert [is_open(memory.fd) for memory in made] == [False, True, True]

    late = pool.take(4096)
    pool.close()
    pool.put(late)
    assert not any(is_open(memory.fd) for memory in (*made, late))


@pytest.mark.parametrize("name", ["memory.max", "memory/memory.limit_in_bytes"])
def test_a_containers_limit_counts_as_the_machines_memory(tmp_path: Path, name: str) -> None:
    """What is kept is a share of what may be used, not of what the host has; a group without a limit changes nothing."""
    whole = memory_bytes(tmp_path)
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("max\n")
    assert memory_bytes(tmp_path) == whole
    file.write_text("4096\n")
    assert memory_bytes(tmp_path) == 4096


def test_small_memory_is_not_kept() -> None:
    """What is cheap to make anew holds no descriptor."""
    pool = SharedMemoryPool(lambda: SIZE)
    memory = pool.take(4096)
    pool.put(memory)
    assert not is_open(memory.fd)


def test_a_tape_that_may_be_in_use_is_not_kept(tmp_path: Path, problem: Problem) -> None:
    """A store goes back to its pool of memory only when nobody can write into it any more."""
    workers, sheet = WorkerPool(tmp_path, None), load_sheet("h200")
    workers.memory = SharedMemoryPool(lambda: SIZE, least=0)
    calls = (CallSpec(seed=1, distribution="as made", group="as made"),)
    plan = CallPlan(problem=problem.model_dump_json(), shake=None, calls=calls)
    with pytest.raises(KeyError), held(workers, problem, plan, sheet, -1) as broken:
        raise KeyError
    with held(workers, problem, plan, sheet, -1) as kept:
        pass
    with held(workers, problem, plan, sheet, -1) as again:
        assert memories(again) == memories(kept)
        assert memories(again).isdisjoint(memories(broken))
    workers.close()


def memories(store: HostStore | DeviceStoreClient) -> set[Memory]:
    """Both memories of a store."""
    assert isinstance(store, HostStore)
    return {store.inputs_memory, store.outputs_memory}


def test_nothing_is_kept_where_the_reference_is_a_strangers(tmp_path: Path) -> None:
    """A wary pool gives no memory to a second use: what ran a stranger's reference may still have it mapped."""
    workers = WorkerPool(tmp_path, None, wary=True)
    memory = workers.memory.take(SIZE * 8)
    workers.memory.put(memory)
    assert not is_open(memory.fd)
    workers.close()
