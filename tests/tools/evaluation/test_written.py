"""What a reference leaves in its arguments and buffers is judged like what it returns, in the sandbox, without a GPU."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.errors import UserError
from tools.evaluation import EvaluationRequest, LocalPool
from tools.problems import load_problem
from tools.records import Problem, Verdict

REFERENCE = """
import torch

rows = 4
columns = 96
SMALL_SIZES = [{"rows": 3, "columns": 65}]


class Model(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.register_buffer("seen", torch.zeros(columns))

    def forward(self, average, cache, x, slot):
        average.mul_(0.9).add_(x, alpha=0.1)
        cache[slot] = x * 2
        self.seen = self.seen + x.sum(0)
        RESULT


def get_inputs():
    return [torch.randn(rows, columns), torch.randn(5, rows, columns), torch.randn(rows, columns), torch.randint(0, 5, (1,))]


def get_init_inputs():
    return [columns]
"""
RESULT = "return average * self.seen"
KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def average_kernel(average_ptr, x_ptr, to_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    average, x = tl.load(average_ptr + offsets, mask=mask), tl.load(x_ptr + offsets, mask=mask)
    tl.store(to_ptr + offsets, average * 0.9 + x * 0.1, mask=mask)


class ModelNew(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.register_buffer("seen", torch.zeros(columns))

    def forward(self, average, cache, x, slot):
        to = average
        average_kernel[(triton.cdiv(x.numel(), 1024),)](average, x, to, x.numel(), BLOCK=1024)
        cache[slot] = x * 2
        self.seen.add_(x.sum(0))
        return to * self.seen
"""
WRONG = {
    "written beside": ("to = average", "to = average.clone()", "written_average"),
    "a row left out": ("cache[slot] = x * 2", "cache[slot, 1:] = x[1:] * 2", "written_cache"),
    "another row, too": ("cache[slot] = x * 2", "cache[slot] = x * 2; cache[(slot + 1) % 5, :1, :1] = 0", "written_cache"),
    "a buffer left as it was": ("self.seen.add_(x.sum(0))", "self.seen = self.seen.clone().add_(x.sum(0)) * 1.5", "written_seen"),
}


def load(folder: Path, result: str = RESULT) -> Problem:
    """Read the reference."""
    file = folder / "keeping.py"
    file.write_text(REFERENCE.replace("RESULT", result))
    return load_problem(file)


@pytest.fixture(scope="module")
def keeping(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    """A reference that writes to two arguments and a buffer."""
    return load(tmp_path_factory.mktemp("keeping"))


def test_what_a_call_writes_to_is_in_the_abi(keeping: Problem) -> None:
    """Arguments and buffers are named, and each is an output behind what is returned; what is written in part may be moved in part."""
    abi = keeping.abi
    assert (abi.written, abi.updated) == (("average", "cache"), ("seen",))
    assert [spec.name for spec in abi.outputs] == ["output0", "written_average", "written_cache", "written_seen"]
    assert [spec.name for spec in abi.returned] == ["output0"]
    assert abi.nbytes - abi.compulsory_bytes == 2 * 4 * 96 * (4 + 20 + 1)


def test_a_kernel_that_writes_the_same_passes(pool: LocalPool, keeping: Problem, request_for: Callable[..., EvaluationRequest]) -> None:
    """Each call finds what it was given, whatever the one before has written, and what it leaves is compared."""
    found = asyncio.run(pool.evaluate(request_for(KERNEL, of=keeping)))
    assert found.verdict is Verdict.PASS, (found.notes, found.log)


@pytest.mark.parametrize("name", WRONG)
def test_a_kernel_that_leaves_something_else_is_wrong(
    pool: LocalPool, keeping: Problem, request_for: Callable[..., EvaluationRequest], name: str
) -> None:
    """Right results do not make up for it, and the output that is wrong is named."""
    before, after, output = WRONG[name]
    assert before in KERNEL
    found = asyncio.run(pool.evaluate(request_for(KERNEL.replace(before, after), of=keeping)))
    assert found.verdict is Verdict.WRONG, (found.notes, found.log)
    assert output in " ".join(found.notes)


def test_an_argument_that_the_reference_leaves_alone_is_not_written(
    pool: LocalPool, keeping: Problem, request_for: Callable[..., EvaluationRequest]
) -> None:
    """That some arguments are written to allows it of no other."""
    found = asyncio.run(pool.evaluate(request_for(KERNEL.replace("        return", "        x.zero_()\n        return"), of=keeping)))
    assert (found.verdict, found.rule) == (Verdict.CHEATED, "input-mutation")
    assert "x" in " ".join(found.notes)


def test_a_reference_may_return_nothing(tmp_path: Path, pool: LocalPool, request_for: Callable[..., EvaluationRequest]) -> None:
    """Then what it leaves behind is all that is judged."""
    found = asyncio.run(pool.evaluate(request_for(KERNEL.replace("return to * self.seen", "return"), of=load(tmp_path, "return"))))
    assert found.verdict is Verdict.PASS, (found.notes, found.log)


def test_state_outside_of_buffers_is_refused(tmp_path: Path) -> None:
    """Nobody could put it back before a call: the message says where it may be kept."""
    with pytest.raises(UserError, match=r"keeps state between calls, in calls. Keep calls in a buffer"):
        load(tmp_path, "self.calls = getattr(self, 'calls', 0) + 1\n        return average * self.calls")
