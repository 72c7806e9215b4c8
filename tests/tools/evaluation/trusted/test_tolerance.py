"""How wrong an output may be, on the inputs it was made from."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tools.evaluation.trusted.distributions import BATTERY
from tools.evaluation.trusted.numerics import ROUNDOFF
from tools.evaluation.trusted.rounding import rounded, stepped
from tools.evaluation.trusted.tolerance import Tolerance, error_of
from tools.problems import load_problem

SUM = """
import torch


def rows_sum(x):
    return x.sum(-1)


def example_inputs():
    return (torch.randn(16, 1 << 17),)
"""


PATHS = """
import torch


def final_value(x):
    value = torch.full((x.shape[1],), 100.0)
    for step in x:
        value = value * torch.exp(step * 0.1)
    return (value - 99.0).mean()


def example_inputs():
    return (torch.randn(64, 4096),)
"""
TANH = """
import torch


def tanh(x):
    return torch.tanh(x)


def example_inputs():
    return (torch.randn(4096, 1024),)
"""


@pytest.fixture(scope="module")
def tolerance(tmp_path_factory: pytest.TempPathFactory) -> Tolerance:
    """The tolerance of a long sum."""
    file = tmp_path_factory.mktemp("sum") / "sum.py"
    file.write_text(SUM)
    return Tolerance(load_problem(file), {}, "cpu")


def test_no_order_of_additions_is_wrong(tolerance: Tolerance) -> None:
    """On sorted rows the partial sums outgrow the result; adding them one after the other is still right."""
    x = BATTERY["sorted rows"](torch.randn(16, 1 << 17))
    total = torch.zeros(16)
    for part in x.view(16, 64, -1).sum(-1).unbind(1):
        total = total + part

    assert _is_right(tolerance, x, total)


def test_a_short_format_is_wrong_in_any_order(tolerance: Tolerance) -> None:
    """On the same rows a sum of TF32 numbers is wrong."""
    x = BATTERY["sorted rows"](torch.randn(16, 1 << 17))

    assert not _is_right(tolerance, x, rounded(x, ROUNDOFF["tf32"]).sum(-1))


def _is_right(tolerance: Tolerance, x: torch.Tensor, found: torch.Tensor) -> bool:
    truth = tolerance.truth(lambda: [x], "sorted rows")
    error = error_of(tolerance.problem.abi.outputs[0], found, truth.reference[0], truth.oracle[0])
    limit = tolerance.limits([truth.scale])[0]
    return error.relative_l2 <= limit.relative_l2 and error.worst_row <= limit.worst_row


def test_errors_of_equal_rows_are_drawn_of_equal_rows(tmp_path: Path) -> None:
    """A mean over equal rows hides no error of a row, so that of the reference is drawn so, too, whatever the `exp` of a machine."""
    file = tmp_path / "paths.py"
    file.write_text(PATHS)
    tolerance = Tolerance(load_problem(file), {}, "cpu")

    def beyond(seed: int) -> float:
        torch.manual_seed(seed)
        x = torch.randn(64, 1).expand(64, 512).contiguous()
        apart = [tolerance.truth(lambda: tolerance.near([x]), sensitive=False).scale.own[0].relative_l2 for _ in range(8)]
        return tolerance.drawn_again([x])[0].relative_l2 / sorted(apart)[-2]

    assert statistics.geometric_mean(beyond(seed) for seed in range(3, 8)) > 1.5


def test_too_little_memory_for_a_second_look_makes_limits_no_wider(tolerance: Tolerance, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where what the inputs determine cannot be seen, the reference's own errors are the limit."""
    x = torch.randn(16, 1 << 17)
    before = tolerance.limits([tolerance.truth(lambda: [x]).scale])[0]
    tight = Tolerance(tolerance.problem, {}, "cpu")

    def fail(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(tight.oracle, "sensitivity", fail)
    after = tight.limits([tight.truth(lambda: [x]).scale])[0]
    assert tight.lacks_room
    assert after.relative_l2 <= before.relative_l2


def test_equal_elements_may_be_moved_alike() -> None:
    """Half of the numbers go up and half down, and equal ones the same way."""
    x = torch.randn(1000).repeat(2).bfloat16()
    moved = stepped([x], ROUNDOFF["bfloat16"], alike=True)[0]
    assert torch.equal(moved[:1000], moved[1000:])
    assert 400 < int((moved[:1000] > x[:1000]).sum()) < 600


PEAK = """
import pathlib, re, sys, torch
from tools.evaluation.trusted import numerics, reference
from tools.evaluation.trusted.tolerance import Tolerance
from tools.problems import load_problem

numerics._PIECE = reference._PIECE = 1 << 18
tolerance = Tolerance(load_problem(pathlib.Path(sys.argv[1])), {}, "cpu")
tolerance.truth(lambda: [torch.randn(4, 1024)])
x = torch.randn(4096, 1024)


def memory(name):
    return int(re.search(name + r":\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1]) * 1024


pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak is what there is now
before = memory("VmRSS")
tolerance.truth(lambda: [x.clone()])
print((memory("VmHWM") - before) / x.nbytes)
"""


def test_large_inputs_take_seven_times_their_memory_to_judge(tmp_path: Path) -> None:
    """Beside the inputs there are the oracle's and the reference's outputs, and one set of inputs with what a run makes of it."""
    file = tmp_path / "tanh.py"
    file.write_text(TANH)
    # freed at once, as a device's memory is
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", PEAK, str(file)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert 4 < float(done.stdout) < 8
