"""The policy `default`: as far from float64 as PyTorch comes, cuDNN's TF32 included, and no further."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
from torch.nn import functional

from tools.evaluation.trusted.cudnn import cudnn_operators
from tools.evaluation.trusted.inputs import made_inputs
from tools.evaluation.trusted.rounding import rounded, to_tf32
from tools.evaluation.trusted.tolerance import Tolerance, error_of
from tools.evaluation.wire.calls import CallSpec
from tools.evaluation.wire.distributions import AS_MADE
from tools.problems import load_problem
from tools.records import DEFAULT_POLICY, PrecisionPolicy

IMAGE, WEIGHT = "2, 8, 9, 9", "6, 8, 3, 3"
CONVOLUTION = "torch.nn.functional.conv2d(x, y)"
PRODUCT = "x.flatten(1) @ x.flatten(1).T"
Kernel = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


@pytest.fixture(scope="module")
def judges(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str, Kernel], bool]:
    """Whether a kernel is within the limits of a policy on a problem of an image and a weight, on its own inputs and on small integers."""
    folder = tmp_path_factory.mktemp("problems")

    def judge(name: str, work: str, kernel: Kernel) -> bool:
        tolerance = Tolerance(load_problem(_written(folder, work), PrecisionPolicy.model_validate({"name": name})), {}, "cpu")
        for distribution in (AS_MADE, "small integers"):
            arguments = made_inputs(tolerance.reference, CallSpec(seed=5, distribution=distribution, group=distribution))
            truth = tolerance.truth(partial(list, arguments), distribution)
            limit = tolerance.limits([truth.scale])[0]
            error = error_of(tolerance.problem.abi.outputs[0], kernel(*arguments), truth.reference[0], truth.oracle[0])
            if not (error.relative_l2 <= limit.relative_l2 and error.worst_row <= limit.worst_row):
                return False
        return True

    return judge


def _written(folder: Path, work: str) -> Path:
    file = folder / f"p{abs(hash(work))}.py"
    inputs = f"    return torch.randn({IMAGE}), torch.randn({WEIGHT})"
    file.write_text(f"import torch\n\n\ndef work(x, y):\n    return {work}\n\n\ndef example_inputs():\n{inputs}\n")
    return file


def _tf32(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return functional.conv2d(to_tf32(x), to_tf32(y))


def test_convolutions_may_round_to_tf32(judges: Callable[[str, str, Kernel], bool]) -> None:
    """A convolution of TF32 operands passes under default and not under exact; one of bfloat16 passes neither."""
    assert judges("default", CONVOLUTION, _tf32)
    assert not judges("exact", CONVOLUTION, _tf32)
    assert not judges("default", CONVOLUTION, lambda x, y: functional.conv2d(rounded(x, 2.0**-8), rounded(y, 2.0**-8)))


def test_what_meets_exact_meets_default(judges: Callable[[str, str, Kernel], bool]) -> None:
    """A convolution in float32 passes both, on numbers too that TF32 holds."""
    assert judges("exact", CONVOLUTION, functional.conv2d)
    assert judges("default", CONVOLUTION, functional.conv2d)


def test_products_may_not(judges: Callable[[str, str, Kernel], bool]) -> None:
    """A matrix product of TF32 operands fails under default as it does under exact, and passes under tf32."""

    def product(x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        return x.flatten(1) @ x.flatten(1).T

    def in_tf32(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return product(to_tf32(x), y)

    assert [judges(name, PRODUCT, in_tf32) for name in ("default", "exact", "tf32")] == [False, False, True]
    assert judges("default", PRODUCT, product)


def test_depthwise_convolutions_may_not(judges: Callable[[str, str, Kernel], bool]) -> None:
    """PyTorch's own depthwise kernels round nothing, so neither may a candidate."""
    depthwise = "torch.nn.functional.conv2d(x, y[:, :1].repeat(4, 1, 1, 1)[:8], groups=8)"

    def kernel(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return functional.conv2d(to_tf32(x), to_tf32(y[:, :1].repeat(4, 1, 1, 1)[:8]), groups=8)

    assert not judges("default", depthwise, kernel)


@pytest.mark.parametrize("module", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
def test_recurrent_networks_are_rounded_in_every_step(module: type[torch.nn.RNNBase]) -> None:
    """Where there is no cuDNN its recurrent networks are written out, and both operands of each product lose their lower bits."""
    torch.manual_seed(0)
    network, x = module(4, 5), torch.randn(3, 2, 4)
    with torch.no_grad():
        exact = network(x)[0]
        with cudnn_operators(rounds=True) as met:
            found = network(x)[0]
    error = float((found - exact).norm() / exact.norm())

    assert met.any
    assert 2e-5 < error < 2e-3
    assert torch.backends.mkldnn.enabled  # type: ignore[attr-defined]


def test_cells_and_products_are_not_cudnns() -> None:
    """What PyTorch computes by cuBLAS, or in a format of its own, is left alone."""
    cell, linear = torch.nn.LSTMCell(4, 5), torch.nn.Linear(4, 5)
    with torch.no_grad(), cudnn_operators(rounds=True) as met:
        cell(torch.randn(2, 4))
        linear(torch.randn(2, 4))
        functional.conv1d(torch.randn(1, 2, 5).double(), torch.randn(3, 2, 2).double())

    assert not met.any


def test_higher_order_operators_run_as_they_are() -> None:
    """A reference that branches by `torch.cond` runs while it is watched."""
    x = torch.ones(3)
    with torch.no_grad(), cudnn_operators(rounds=True):
        found = torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))

    assert torch.equal(found, x.sin())


def test_default_comes_to_tf32_for_cudnn_alone() -> None:
    """For one operator the policy is tf32 or exact, and its factor stays."""
    policy = DEFAULT_POLICY.model_copy(update={"factor": 2.0})

    assert (policy.of_operator(cudnn=True).name, policy.of_operator(cudnn=False).name) == ("tf32", "exact")
    assert policy.of_operator(cudnn=True).factor == 2.0
    assert PrecisionPolicy(name="fp16").of_operator(cudnn=False).name == "fp16"


def test_the_format_below_is_told_from_what_the_reference_calls(tmp_path: Path) -> None:
    """Admission's next shorter format is below TF32 where cuDNN is called, and TF32 itself where it is not."""
    for work, expected in ((CONVOLUTION, 2.0**-11), (PRODUCT, 2.0**-24)):
        tolerance = Tolerance(load_problem(_written(tmp_path, work), DEFAULT_POLICY), {}, "cpu")
        tolerance.truth(partial(tolerance.reference.inputs, 3))

        assert tolerance.roundoff("float32") == expected
