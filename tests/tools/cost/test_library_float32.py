"""How long the library's float32 products are taken to be without tensor cores."""

from __future__ import annotations

import pytest

from tests.tools.codegen.harness import traced_text
from tests.tools.codegen.samples import function
from tools.codegen.schedule.plan import plan_region
from tools.cost.library import library_us
from tools.hardware import load_sheet
from tools.policies import load_policy
from tools.records import DEFAULT_POLICY

SHEET = load_sheet("h100")


def _product_us(rows: int, summed: int, cols: int, policy: str = "default") -> float:
    _, graph = traced_text(function("x @ y", f"torch.randn({rows}, {summed}), torch.randn({summed}, {cols})", "x, y"))
    planned = plan_region(graph, tuple(node.name for node in graph.nodes))
    return library_us(planned, SHEET, load_policy(policy) if policy != "default" else DEFAULT_POLICY)


@pytest.mark.parametrize(
    ("rows", "summed", "cols", "measured"),
    [
        (147456, 128, 128, 147),
        (400000, 32, 64, 81),
        (16384, 64, 1024, 73),
        (1024, 1024, 1024, 62),
        (32768, 512, 16, 37),
        (128, 128, 128, 8),
    ],
)
def test_a_product_takes_as_long_as_it_was_measured_to(rows: int, summed: int, cols: int, measured: float) -> None:
    """Of short sums, few tiles and few columns, with the flags that PyTorch has by default (an H100; two of an H200)."""
    assert _product_us(rows, summed, cols) == pytest.approx(measured, rel=0.2)


def test_products_of_a_batch_share_no_sum() -> None:
    """Eight of 3 by 262,144 by 3 took 7,900 µs on an H200: each is one tile, which nobody splits."""
    text = function("torch.einsum('bij,bik->bjk', x, y)", "torch.randn(8, 262144, 3), torch.randn(8, 262144, 6)", "x, y")
    _, graph = traced_text(text)
    planned = plan_region(graph, tuple(node.name for node in graph.nodes))
    assert library_us(planned, SHEET, DEFAULT_POLICY) == pytest.approx(7900, rel=0.2)


def test_tf32_is_taken_where_the_policy_has_it() -> None:
    """The library's product is several times as fast then."""
    assert _product_us(4096, 4096, 4096, "tf32") < 0.3 * _product_us(4096, 4096, 4096)
