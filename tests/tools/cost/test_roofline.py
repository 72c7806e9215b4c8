"""The roofline floor, by hand on the H200's sheet."""

from __future__ import annotations

import pytest

from tests.support.makers import problem
from tools.cost.roofline import floor_us, impossible_us, matmul_dtype, roofline
from tools.records import HardwareSheet, OperatorFamily

N = 4096


def test_a_pointwise_problem_is_bound_by_bandwidth(h200: HardwareSheet) -> None:
    """48 MB read and 48 MB written at 4800 GB/s take 20 µs."""
    floor = roofline(problem(((12_000, 1000),), (12_000, 1000)), h200)
    assert floor.bound == "bandwidth"
    assert floor.us == pytest.approx(20.0)


@pytest.mark.parametrize(("policy", "tflops"), [("exact", 989.5 / 3), ("tf32", 494.5), ("bf16", 989.5)])
def test_a_product_is_bound_by_the_fastest_rate_the_policy_allows(h200: HardwareSheet, policy: str, tflops: float) -> None:
    """Exact float32 may be made of three half-precision products; a looser policy opens the tensor cores' own rates."""
    product = problem(((N, N), (N, N)), (N, N), families=(OperatorFamily.MATMUL,), matmul_flops=2 * N**3, policy=policy)  # type: ignore[arg-type]
    floor = roofline(product, h200)
    assert floor.bound == "matmul"
    assert floor.us == pytest.approx(2 * N**3 / (tflops * 1e6))


def test_the_default_policy_opens_tf32_to_cudnn_alone(h200: HardwareSheet) -> None:
    """Under PyTorch's own flags a convolution is bound by TF32's rate, and a product by what exact float32 can be made of."""
    for family, tflops in ((OperatorFamily.CONVOLUTION, 494.5), (OperatorFamily.MATMUL, 989.5 / 3)):
        heavy = problem(((N, N), (N, N)), (N, N), families=(family,), matmul_flops=2 * N**3, policy="default")
        assert floor_us(heavy, h200) == pytest.approx(2 * N**3 / (tflops * 1e6))


def test_half_precision_data_use_their_own_rate(h200: HardwareSheet) -> None:
    """A product of float16 matrices is bound by the float16 tensor rate under the exact policy."""
    product = problem(((N, N), (N, N)), (N, N), matmul_flops=2 * N**3, dtype="float16")
    assert floor_us(product, h200) == pytest.approx(2 * N**3 / 989.5e6)


def test_products_are_bound_by_their_own_dtype_beside_wider_tables(h200: HardwareSheet) -> None:
    """Half-precision products of a problem that is also given float32 use the float16 rate; those of float32 beside them their own."""
    product = problem(((N, N), (N, N)), (N, N), matmul_flops=2 * N**3)
    halves = {"float16": N**3, "float32": N**3}
    mixed = product.model_copy(update={"work": product.work.model_copy(update={"matmul_flops_by_dtype": halves})})
    assert matmul_dtype(product) == "float32"
    assert floor_us(mixed, h200) == pytest.approx(N**3 / 989.5e6 + 3 * N**3 / 989.5e6)
    only = product.model_copy(update={"work": product.work.model_copy(update={"matmul_flops_by_dtype": {"float16": 2 * N**3}})})
    assert matmul_dtype(only) == "float16"
    assert floor_us(only, h200) == pytest.approx(2 * N**3 / 989.5e6)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_products_of_one_byte_are_bound_by_twice_the_rate_of_halves(h200: HardwareSheet, dtype: str) -> None:
    """A search over scaled products of float8 is not ended by a floor that only wider formats have."""
    product = problem(((N, N), (N, N)), (N, N), matmul_flops=2 * N**3)
    narrow = product.model_copy(update={"work": product.work.model_copy(update={"matmul_flops_by_dtype": {dtype: 2 * N**3}})})
    assert floor_us(narrow, h200) == pytest.approx(2 * N**3 / (2 * 989.5e6))


def test_a_measured_time_is_never_called_impossible_above_the_floor(h200: HardwareSheet) -> None:
    """What may stay in the L2 is left out, so a problem that fits the L2 has no impossible time, and no bound exceeds the floor."""
    small, large = problem(), problem(((65_536, 4096),), (65_536, 4096))
    assert impossible_us(small, h200) == 0.0
    assert 0 < impossible_us(large, h200) < floor_us(large, h200)


@pytest.mark.parametrize(
    ("operator", "family"),
    [
        ("aten.embedding.default", OperatorFamily.INDEXING),
        ("aten.max_pool2d_with_indices.default", OperatorFamily.POOLING),
        ("aten.convolution.default", OperatorFamily.CONVOLUTION),
        ("aten.nll_loss_forward.default", OperatorFamily.LOSS),
    ],
)
def test_operators_that_may_skip_input_have_no_impossible_time(h200: HardwareSheet, operator: str, family: OperatorFamily) -> None:
    """An embedding reads the rows it is asked for, and a window whose stride is wider than itself leaves elements out."""
    assert impossible_us(problem(((500_000, 1024),), (16, 1024), operators=(operator,), families=(family,)), h200) == 0.0


def test_a_narrowed_input_counts_as_what_is_read_of_it(h200: HardwareSheet) -> None:
    """Where eager reads a quarter of an input, through a view, a kernel may do the same."""
    whole, quarter = (65_536, 4096), (16_384, 4096)
    moved = 2 * 16_384 * 4096 * 4
    assert impossible_us(problem((whole,), quarter, eager_bytes=moved), h200) == impossible_us(problem((quarter,), quarter), h200)
