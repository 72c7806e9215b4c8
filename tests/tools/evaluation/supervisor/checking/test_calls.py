"""Calls beyond the ordinary: parameters of a problem of one size, misaligned inputs, red zones, a call that is listened to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.errors import UserError
from tools.evaluation import EvaluationRequest, LocalPool
from tools.evaluation.supervisor.checking import correctness
from tools.evaluation.supervisor.checking.call_plan import plan_calls
from tools.evaluation.wire.defences import Defence
from tools.hardware import load_sheet
from tools.problems import load_problem, small_variants
from tools.records import Evaluation, Problem

Judge = Callable[..., Evaluation]

ONE_SIZE = """
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(65))

    def forward(self, x):
        return x * self.weight


def get_inputs():
    return [torch.randn(3, 65)]


def get_init_inputs():
    return []


SMALL_SIZES = []
"""

FORGETFUL = """
import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(65))

    def forward(self, x):
        out = torch.empty_like(x)
        copy_kernel[(1,)](x, out, x.numel(), BLOCK=256)
        return out
"""


@pytest.fixture
def one_size(tmp_path: Path) -> Problem:
    """A problem without variants whose weights are all one."""
    file = tmp_path / "scale.py"
    file.write_text(ONE_SIZE)
    return load_problem(file)


def test_a_default_cannot_be_built_in_where_there_is_one_size(pool: LocalPool, one_size: Problem) -> None:
    """Without variants parameters are shaken at the problem as written: a kernel that leaves them out is WRONG."""
    assert small_variants(one_size) == ()
    request = EvaluationRequest(problem=one_size, candidate="c", source=FORGETFUL, target=load_sheet("h200"), timeout_s=30)

    found = asyncio.run(pool.evaluate(request))

    assert found.verdict == "WRONG"
    assert found.seeds[0].shake is not None


@pytest.mark.slow
def test_hanging_when_listened_to_costs_seconds_and_no_verdict(judge: Judge, kernel: str) -> None:
    """A candidate that never ends the call in which it is listened to keeps its verdict, and the rest of its time is not waited for."""
    listened = "triton.runtime.interpreter.GridExecutor.__call__.__name__ == 'launch'"
    # asleep, so that no other test waits for the processor meanwhile
    shy = "import time\n" + kernel.replace("        out =", f"        while {listened}:\n            time.sleep(0.05)\n        out =")

    # all of it is slower on a busy machine: beside twenty others it took 49 s
    found = judge(shy, timeout_s=240.0, off=frozenset({Defence.STATIC_RULES}))

    assert found.verdict == "PASS"
    assert found.seconds < 80


@pytest.mark.parametrize(("quick_s", "verdict"), [(600.0, "CRASHED"), (0.0, "PASS")], ids=["in turn", "side by side"])
def test_sizes_share_a_runner_while_they_are_quick(
    judge: Judge, problem: Problem, kernel: str, monkeypatch: pytest.MonkeyPatch, quick_s: float, verdict: str
) -> None:
    """A candidate that is to be imported once in a process fails at the second size of a runner, and passes where each has its own."""
    once = "import sys\nassert not hasattr(sys, 'imported'), 'imported before'\nsys.imported = True\n"
    two = problem.model_copy(update={"source": problem.source.replace('[{"rows"', '[{"rows": 2, "columns": 9}, {"rows"')})
    monkeypatch.setattr(correctness, "QUICK_S", quick_s)

    found = judge(once + kernel, of=two, off=frozenset({Defence.STATIC_RULES}))

    assert found.verdict == verdict, found.notes
    assert (verdict == "PASS") or "imported before" in found.log


def test_misaligned_inputs_are_given_where_the_problem_declares_them(one_size: Problem) -> None:
    """One fresh call begins one element later, where the problem says `INPUT_VIEWS = True`, and none elsewhere."""
    declared = one_size.model_copy(update={"source": f"{ONE_SIZE}\nINPUT_VIEWS = True\n"})

    calls = plan_calls(declared, 0, "search", battery=True).calls

    assert [call.shifted for call in calls].count(True) == 1
    assert "as made, misaligned" in {call.published.distribution for call in calls}
    assert not any(call.shifted for call in plan_calls(one_size, 0, "search", battery=True).calls)


def test_declaring_views_otherwise_is_refused(tmp_path: Path) -> None:
    """Anything but True or False is a wrong input, with its line."""
    file = tmp_path / "scale.py"
    file.write_text(f"{ONE_SIZE}\nINPUT_VIEWS = 'yes'\n")

    with pytest.raises(UserError, match="neither True nor False"):
        load_problem(file)


@pytest.mark.parametrize(
    ("slow", "verdict"), [("while time.process_time() < until: pass", "PASS"), ("time.sleep(3)", "TIMED_OUT")], ids=["computes", "sleeps"]
)
def test_a_size_as_written_that_takes_too_long_is_named(judge: Judge, kernel: str, slow: str, verdict: str) -> None:
    """What computes too long at full size is judged at the small ones, and that is said; one that sleeps there has timed out."""
    large = f"        if x.numel() > 1000 and type(x) is torch.Tensor:\n            until = time.process_time() + 3\n            {slow}\n"
    source = "import time\n" + kernel.replace("        out =", f"{large}        out =")

    found = judge(source, timeout_s=12.0, off=frozenset({Defence.STATIC_RULES}))

    assert found.verdict == verdict, found.notes
    if verdict == "PASS":
        assert found.correctness is not None
        assert found.correctness.sizes == ("rows=3, columns=65",)
        assert any(note.startswith("Not judged at full size") and "--timeout 12" in note for note in found.notes)
