"""On a GPU: calls change elements, so that some become equal, and any order of these is right. Run with `pytest -m gpu`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tools.evaluation import EvaluationRequest, LocalPool
from tools.hardware.detect import detect_sheet
from tools.hardware.devices import first_device
from tools.problems import load_problem, small_variants
from tools.records import Evaluation, Verdict

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(first_device() is None, reason="this machine has no NVIDIA GPU"),
    pytest.mark.timeout(300),
]

_LATE = 16
"""Calls of a module that a check in a search makes at most, and fewer than are timed before one that is judged."""
OPERATOR = Path("data/suites/wild/experts/softmax_routing.py")
KERNEL = '''
import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["calls"])
def routing_kernel(logits_ptr, weights_ptr, experts_ptr, n_experts, calls, CHOSEN: tl.constexpr, BLOCK_N: tl.constexpr):
    """Of logits[t, e] the CHOSEN largest, the last of equal ones first, with their softmax made to add up to one."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_N)
    left = tl.load(logits_ptr + row * n_experts + cols, mask=cols < n_experts, other=-float("inf")).to(tl.float32)
    top = tl.max(left, axis=0)
    total = 0.0
    for place in tl.static_range(CHOSEN):
        best = tl.max(left, axis=0)
        expert = tl.max(tl.where(left == best, cols, -1), axis=0)
        tl.store(experts_ptr + row * CHOSEN + place, expert.to(tl.int64))
        tl.store(weights_ptr + row * CHOSEN + place, tl.exp(best - top))
        total += tl.exp(best - top)
        left = tl.where(TAKEN, -float("inf"), left)
    tl.debug_barrier()
    places = tl.arange(0, CHOSEN)
    weights = tl.load(weights_ptr + row * CHOSEN + places)
    tl.store(weights_ptr + row * CHOSEN + places, weights / total)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, logits):
        self.calls += 1
        tokens, n_experts = logits.shape
        chosen = 8
        weights = torch.empty((tokens, chosen), dtype=torch.float32, device=logits.device)
        experts = torch.empty((tokens, chosen), dtype=torch.int64, device=logits.device)
        block = triton.next_power_of_2(n_experts)
        routing_kernel[(tokens,)](logits, weights, experts, n_experts, self.calls, CHOSEN=chosen, BLOCK_N=block, num_warps=1)
        return weights, experts
'''


def _judged(folder: Path, taken: str) -> Evaluation:
    """Evaluate the kernel that takes these elements out of the choice."""

    async def judge() -> Evaluation:
        pool = LocalPool(folder / "scratch", first_device())
        problem = load_problem(OPERATOR)
        source, variants, target = KERNEL.replace("TAKEN", taken), small_variants(problem), detect_sheet()
        assert target is not None
        request = EvaluationRequest(problem=problem, variants=variants, candidate="routing", source=source, target=target)
        try:
            return await pool.evaluate(request)
        finally:
            await pool.close()

    return asyncio.run(judge())


def test_the_last_of_equal_experts_is_as_right_as_the_first(tmp_path: Path) -> None:
    """It is timed, though nearly every timed call has rows that tie."""
    found = _judged(tmp_path, "cols == expert")
    assert found.verdict is Verdict.PASS, found.notes
    assert found.timing is not None


def test_equal_experts_that_are_lost_are_wrong(tmp_path: Path) -> None:
    """It takes both of two equal ones out of the choice, and is right where none are equal: the first call that has such finds it."""
    found = _judged(tmp_path, "left == best")
    assert found.verdict is Verdict.WRONG, found.notes


def test_equal_experts_that_are_lost_late_are_wrong(tmp_path: Path) -> None:
    """It does so only after more calls than a check makes of a size: those that were timed are judged, too."""
    found = _judged(tmp_path, "(left == best) & ((calls > LATE) | (cols == expert))".replace("LATE", str(_LATE)))
    assert found.verdict is Verdict.WRONG, found.notes
    assert "timed calls that were checked gave a wrong answer" in found.notes[0]
