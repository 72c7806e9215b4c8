"""The battery of inputs."""

from __future__ import annotations

import pytest
import torch

from tools.evaluation.trusted import distributions
from tools.evaluation.trusted.distributions import BATTERY, transform
from tools.evaluation.wire.distributions import HARD, KEEPS_RANGE, NAMES, NON_FINITE, TIES, allowed

DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.complex64]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", [*BATTERY, NON_FINITE])
def test_shape_and_dtype_stay(name: str, dtype: torch.dtype) -> None:
    """Every distribution keeps shape and dtype, from no element and no dimension on."""
    for shape in ((), (0,), (1,), (5, 7), (2, 3, 4)):
        value = torch.randn(shape).to(dtype)
        made = transform(name, [value])[0]

        assert made.shape == value.shape
        assert made.dtype == dtype


def test_integers_and_scalars_stay_as_they_are() -> None:
    """Targets, indices and scalars keep their valid range."""
    targets = torch.arange(4)

    for name in BATTERY:
        made = transform(name, [targets, 3])
        assert torch.equal(made[0], targets)
        assert made[1] == 3


@pytest.mark.parametrize("shorter", [torch.float16, torch.bfloat16])
def test_low_bits_are_lost_by_shorter_formats_and_always_downwards(shorter: torch.dtype) -> None:
    """Rounding to a shorter format loses at least 2^-14 of every element, towards zero, down to that format's smallest normal number."""
    made = transform("low bits", [torch.randn(10_000)])[0]
    made = made[made.abs() >= torch.finfo(shorter).tiny]
    lost = 1 - made.to(shorter).double() / made.double()

    assert float(lost.min()) > 2**-14


def test_low_bits_of_float64_are_lost_by_float32() -> None:
    """The same for a float64 problem computed in float32."""
    made = transform("low bits", [torch.randn(1000, dtype=torch.float64)])[0]

    assert float((1 - made.float().double() / made).min()) > 2**-28


def test_odd_integers_are_float32s_alone() -> None:
    """Odd integers beyond 2^11 are exact in float32 and in nothing shorter, and positive inputs stay positive."""
    made = transform("odd integers", [torch.rand(1000)])[0]

    assert bool((made == made.round()).all())
    assert bool((made > 2048).all())
    assert not bool((made.half().float() == made).any())


def test_denormals_are_among_ordinary_numbers() -> None:
    """Some elements are too small for a normal float, and most are as they were."""
    made = transform("denormals", [torch.randn(1000) + 4])[0]
    tiny = made.abs() < torch.finfo(torch.float32).tiny

    assert 150 < int(tiny.sum()) < 350
    assert not bool((made == 0).any())


def test_block_diagonal_keeps_four_blocks() -> None:
    """Off the blocks there is nothing."""
    made = transform("block diagonal", [torch.ones(8, 8)])[0]

    assert torch.equal(made, torch.block_diag(*[torch.ones(2, 2)] * 4))


def test_non_finite_puts_each_kind_once() -> None:
    """One NaN, one infinity and one minus infinity among many."""
    made = transform(NON_FINITE, [torch.zeros(100)])[0]

    assert [int(test(made).sum()) for test in (torch.isnan, torch.isposinf, torch.isneginf)] == [1, 1, 1]


def test_operators_that_fault_on_a_range_meet_only_their_own_elements() -> None:
    """Where an element out of range ends a CUDA context, distributions only rearrange elements."""
    assert allowed(("aten.binary_cross_entropy.default",), integers_out=False) == KEEPS_RANGE


def test_integer_outputs_meet_no_ties() -> None:
    """Distributions with equal elements are left out where outputs are indices; hard ones that make none stay."""
    names = allowed(("aten.argmax.default",), integers_out=True)

    assert not set(names) & set(TIES)
    assert {"low bits", "offset"} <= set(names)
    assert set(HARD) <= set(distributions.BATTERY)


def test_every_name_of_the_battery_has_its_distribution() -> None:
    """The supervisor chooses among names, and a trusted process has a distribution for each of them and no other."""
    assert tuple(BATTERY) == NAMES
