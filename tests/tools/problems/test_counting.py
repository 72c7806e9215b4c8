"""Work: families, operations and bytes of single operators."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import nn
from torch._subclasses import FakeTensorMode
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tools.problems.counting import Counter
from tools.records import OperatorFamily, Work

X = torch.randn(4, 6, 8, 8)
M = torch.randn(16, 24)


def count(call: Callable[[], object]) -> Work:
    """Count one call."""
    with torch.no_grad(), Counter() as counter:
        call()
    return counter.work()


CALLS: dict[OperatorFamily, Callable[[], object]] = {
    OperatorFamily.SOFTMAX: lambda: torch.softmax(M, 1),
    OperatorFamily.NORMALISATION: lambda: functional.layer_norm(M, (24,)),
    OperatorFamily.CONVOLUTION: lambda: functional.conv2d(X, torch.randn(5, 6, 3, 3)),
    OperatorFamily.POOLING: lambda: functional.max_pool2d(X, 2),
    OperatorFamily.SCAN: lambda: torch.cumsum(M, 1),
    OperatorFamily.ATTENTION: lambda: functional.scaled_dot_product_attention(X, X, X),
    OperatorFamily.POINTWISE: lambda: functional.gelu(M),
    OperatorFamily.REDUCTION: lambda: M.amax(1),
    OperatorFamily.MATMUL: lambda: M @ M.T,
    OperatorFamily.INDEXING: lambda: functional.embedding(torch.tensor([1, 2]), M),
    OperatorFamily.LOSS: lambda: functional.mse_loss(M, M),
}


@pytest.mark.parametrize("family", CALLS)
def test_operators_have_their_family(family: OperatorFamily) -> None:
    """Operators are known by the names they have below the dispatcher."""
    assert count(CALLS[family]).families[0] is family


def test_networks_of_recurrence_are_known() -> None:
    """An LSTM is recurrent, its products counted."""
    lstm = nn.LSTM(8, 5)
    sequence = torch.randn(7, 3, 8)
    work = count(lambda: lstm(input=sequence))
    assert work.matmul_flops == 7 * 3 * 2 * (20 * 8 + 20 * 5)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers_are_one_operator_of_many_steps(kind: type[nn.RNNBase]) -> None:
    """A CPU runs some of them step by step; what waits for one another is counted over layers and directions."""
    layers = kind(8, 5, num_layers=2, bidirectional=True, batch_first=True)  # type: ignore[arg-type]
    work = count(lambda: layers(torch.randn(3, 7, 8)))
    assert len([name for name in work.operators if name.endswith(".input")]) == 1
    assert work.families[0] is OperatorFamily.RECURRENT
    assert work.recurrent_steps == 7 * 2 * 2


class Called(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts what is run, whether or not it is work."""

    calls = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Count a call and make it."""
        self.calls += 1
        return func(*args, **(kwargs or {}))


def layouts(steps: int, kind: type[nn.RNNBase], *, batch_first: bool, both: bool, counted: bool) -> tuple[list[object], int]:
    """Run recurrent layers without contents; return the shapes and strides of what they give, and how many operators they ran."""
    with FakeTensorMode(), torch.no_grad(), Called() as called, Counter() if counted else nullcontext():
        layers = kind(8, 5, num_layers=2, bidirectional=both, batch_first=batch_first)  # type: ignore[arg-type]
        results = tree_leaves(layers(torch.empty((3, steps, 8) if batch_first else (steps, 3, 8))))
    return [(result.shape, result.stride()) for result in results], called.calls


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers_without_contents_run_one_step(kind: type[nn.RNNBase]) -> None:
    """Each is as the next, and hundreds of them would take seconds."""
    few, many = (layouts(steps, kind, batch_first=True, both=True, counted=True)[1] for steps in (2, 200))
    assert few == many


@pytest.mark.parametrize("steps", [1, 2, 7])
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_results_of_recurrent_layers_lie_as_those_of_all_steps(kind: type[nn.RNNBase], batch_first: bool, both: bool, steps: int) -> None:
    """What follows them is told by their shapes and strides."""
    ours, torchs = (layouts(steps, kind, batch_first=batch_first, both=both, counted=counted)[0] for counted in (True, False))
    assert ours == torchs


def test_views_and_allocations_cost_nothing() -> None:
    """Reshaping, slicing, transposing and allocating are not work; a copy is."""
    assert count(lambda: torch.empty(5, 2).T).operators == ()
    assert count(lambda: M.view(24, 16).T[1:].expand(2, 15, 24)).operators == ()
    assert count(M.T.contiguous).eager_bytes == 2 * M.nbytes


def test_products_are_counted_by_shape() -> None:
    """Two operations a multiply-add: matrix by matrix, matrix by vector, convolution, attention."""
    assert count(lambda: torch.bmm(X[:, 0], X[:, 1])).matmul_flops == 2 * 4 * 8 * 8 * 8
    assert count(lambda: M @ torch.randn(24)).matmul_flops == 2 * 16 * 24
    assert count(lambda: torch.addmv(torch.randn(16), M, torch.randn(24))).matmul_flops == 2 * 16 * 24
    assert count(CALLS[OperatorFamily.CONVOLUTION]).matmul_flops == 2 * 4 * 5 * 6 * 6 * 6 * 9
    assert count(CALLS[OperatorFamily.ATTENTION]).matmul_flops == 2 * (2 * 4 * 6 * 8 * 8 * 8)


def test_products_are_counted_by_the_dtype_of_their_matrices() -> None:
    """Tables, scales and biases in float32 make no product of halves, or of float8, one of float32; a complex one's parts count."""
    half = M.half()
    assert count(lambda: (half @ half.T) * torch.randn(16)).matmul_flops_by_dtype == {"float16": 2 * 16 * 16 * 24}
    assert count(lambda: (half @ half.T, M @ M.T)).matmul_flops_by_dtype == {"float16": 2 * 16 * 16 * 24, "float32": 2 * 16 * 16 * 24}
    assert count(lambda: M.to(torch.complex64) @ torch.ones(24, dtype=torch.complex64)).matmul_flops_by_dtype.keys() == {"float32"}
    assert count(lambda: M * 2).matmul_flops_by_dtype == {}
    narrow = M[:, :16].to(torch.float8_e4m3fn)
    scaled = count(lambda: torch._scaled_mm(narrow, narrow.T, torch.ones(16, 1), torch.ones(1, 16), out_dtype=torch.bfloat16))
    assert scaled.matmul_flops_by_dtype == {"float8_e4m3fn": 2 * 16**3}
    layer = torch.nn.LSTM(8, 8).bfloat16()
    assert count(lambda: layer(torch.randn(4, 2, 8).bfloat16())).matmul_flops_by_dtype.keys() == {"bfloat16"}


def test_expanded_dimensions_are_read_once() -> None:
    """A broadcast operand costs what it holds, not what it is stretched to."""
    row = torch.randn(24).expand(16, 24)
    assert count(lambda: M * row).eager_bytes == (16 * 24 + 24 + 16 * 24) * 4


def test_heaviest_family_comes_first() -> None:
    """A large product before a small softmax, a large softmax before a small product."""
    a, big = torch.randn(128, 128), torch.randn(512, 512)
    assert count(lambda: (a @ a, a[:2].softmax(1))).families[0] is OperatorFamily.MATMUL
    assert count(lambda: (a[:2] @ a, big.softmax(1))).families[0] is OperatorFamily.SOFTMAX


def test_attention_over_more_keys_than_values_is_refused() -> None:
    """PyTorch's fused attention takes such a call, and reads past the values' end."""
    query, key = torch.randn(2, 4, 1, 8), torch.randn(2, 4, 6, 8)
    with pytest.raises(RuntimeError, match="6 keys and 4 values"), Counter():
        functional.scaled_dot_product_attention(query, key, key[:, :, :4])
