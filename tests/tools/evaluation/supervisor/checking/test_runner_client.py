"""What a runner can see of the supervisor in the memory they share."""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from tools.evaluation.processes.shared_memory_pool import SharedMemoryPool
from tools.evaluation.processes.worker_pool import WorkerPool
from tools.evaluation.supervisor.checking.call_plan import plan_calls
from tools.evaluation.supervisor.checking.runner_client import RunnerClient
from tools.evaluation.wire.channel import Exchange, Load
from tools.evaluation.wire.jobs.runner import RunnerJob
from tools.evaluation.wire.tensor_store import HostStore
from tools.hardware import load_sheet
from tools.problems import load_problem
from tools.records import Problem

SPY = """
import gc

import torch


def shared():
    runner = next(thing for thing in gc.get_objects() if type(thing).__name__ == "Runner")
    return runner._exchange, runner._memory


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        exchange, memory = shared()
        self.early = EARLY
        self.seen = []

    def forward(self, x, *others):
        exchange, memory = shared()
        self.seen.append(SEEN)
        return torch.full_like(x, float(ANSWER))
"""

ADD = """
import torch


def add(x, y):
    return x + y


def example_inputs():
    return torch.randn(5), torch.randn(5)
"""


@pytest.fixture
def ragged(tmp_path: Path) -> Problem:
    """The sum of two vectors that do not fill their places."""
    file = tmp_path / "add.py"
    file.write_text(ADD)
    return load_problem(file)


@contextmanager
def spied(workers: WorkerPool, problem: Problem, seen: str, answer: str, early: str = "None") -> Iterator[tuple[RunnerClient, HostStore]]:
    """A runner of a candidate that looks at what it shares, `early` when it is made, and makes its `answer` of what it has seen."""
    store = HostStore(problem.abi, plan_calls(problem, 0, "search", battery=False).calls)
    source = SPY.replace("SEEN", seen).replace("ANSWER", answer).replace("EARLY", early)
    job = RunnerJob(abi=problem.abi, source=source, device="cpu", sheet=load_sheet("h200"))
    store.inputs_memory.bytes_at(0, store.inputs_memory.size)[:] = 0x2A
    with RunnerClient(workers, job, store, time.monotonic() + 60, -1, gpu=False) as runner:
        yield runner, store
    store.close()


def collected(runner: RunnerClient, store: HostStore) -> float:
    """Take the outputs of the last call, all of whose elements are the candidate's answer."""
    runner.collect(0)
    return float(store.outputs(0).raw(store.outputs_memory)[:4].view(np.float32)[0])


def test_a_call_that_will_be_judged_looks_like_the_one_before(workers: WorkerPool, problem: Problem) -> None:
    """The place of the outputs does not say before a call whether they will be collected: who knew could leave the other calls undone."""
    seen = "bytes(exchange.outputs.raw(memory)[:64])"
    with spied(workers, problem, seen, "self.seen[-1] == self.seen[-2] if self.seen[2:] else -1") as (runner, store):
        runner.give(0)
        runner.call(Load.ALL)
        assert collected(runner, store) == -1
        runner.call(Load.ALL)
        runner.call(Load.ALL)
        assert collected(runner, store) == 1


def test_nothing_lies_between_the_tensors_of_an_input(workers: WorkerPool, ragged: Problem) -> None:
    """Memory is used again and holds what is old: of a store only the tensors' own bytes reach a runner, and nothing between them."""
    first = Exchange(ragged.abi).inputs
    assert first.offsets[1] - first.offsets[0] > ragged.abi.inputs[0].nbytes
    seen = "int((exchange.inputs.raw(memory)[x.nbytes:exchange.inputs.offsets[1] - exchange.inputs.start] != 0).sum())"
    with spied(workers, ragged, seen, "self.seen[-1]") as (runner, store):
        runner.give(0)
        runner.call(Load.ALL)
        assert collected(runner, store) == 0


def test_pages_of_a_dead_runner_serve_the_next_one_and_say_nothing_of_it(workers: WorkerPool, problem: Problem) -> None:
    """The memory that a runner shared is given to the next: before it makes anything, outputs are poisoned and all else is nothing."""
    view = copy.copy(workers)
    view.exchanges = SharedMemoryPool(lambda: 1 << 30, least=0, wider=1)
    whole = "__import__('numpy').frombuffer(memory._map, dtype='uint8')"
    beside = f"int(({whole}[:exchange.outputs.start] != 0).sum()) + int(({whole}[exchange.outputs.end:] != 0).sum())"
    outputs = "int((exchange.outputs.raw(memory) == 9).sum())"
    found, pages = [], []
    for seen, early in ((f"{whole}.__setitem__(slice(None), 9)", "-1"), ("None", f"{beside} + {outputs}")):
        with spied(view, problem, seen, "self.early", early) as (runner, store):
            runner.give(0)
            runner.call(Load.ALL)
            found.append(collected(runner, store))
            pages.append(os.fstat(runner._memory.fd).st_ino)
    assert found == [-1, 0]
    assert pages[0] == pages[1]
    view.exchanges.close()
