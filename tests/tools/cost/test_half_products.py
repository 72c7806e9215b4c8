"""The cost model against bfloat16 products that were measured on an H200: kernels alone, microseconds (2026-11-26, triton 3.6)."""

from __future__ import annotations

import statistics
from typing import Any

import pytest

from tests.tools.codegen.compute_samples import module
from tests.tools.codegen.harness import traced_text
from tests.tools.codegen.samples import function
from tools.codegen.ir.views import is_view
from tools.codegen.schedule.plan import plan_region
from tools.cost.launch_time import launch_time_us
from tools.cost.rank_schedules import modelled_choices
from tools.hardware import load_sheet
from tools.records import PrecisionPolicy

NUMBERS = ("BLOCK_M", "BLOCK_N", "BLOCK_K", "SPLIT_K", "num_warps", "num_stages", "loads")
P, D = "pointers", "descriptors"
FEW_ROWS = {
    (32, 32, 128, 1, 4, 4, P): 23.5, (32, 32, 64, 1, 4, 5, P): 29.4, (32, 32, 128, 2, 4, 4, P): 14.6, (32, 32, 128, 4, 4, 4, P): 12.9,
    (32, 64, 64, 2, 4, 5, P): 24.4, (32, 64, 128, 4, 4, 4, P): 15.1, (32, 64, 64, 1, 4, 5, P): 38.0, (32, 128, 64, 1, 4, 4, P): 61.0,
}  # fmt: skip
"""32 rows by 8192 by 2048."""
WITH_GELU = {
    (128, 128, 64, 1, 8, 4, D): 70.9, (128, 128, 64, 1, 4, 4, D): 81.3, (256, 128, 64, 1, 8, 4, D): 77.2, (128, 256, 64, 1, 8, 3, D): 76.7,
    (128, 128, 64, 1, 8, 4, P): 87.6, (256, 128, 64, 1, 8, 3, P): 98.2, (128, 256, 64, 1, 8, 4, P): 88.2,
}  # fmt: skip
"""3152 rows by 1024 by 4096, with an exact GELU."""
CASES: dict[str, tuple[str, str, dict[tuple[Any, ...], float]]] = {
    "few rows": ("F.linear(x, w)", "(32, 8192), (2048, 8192)", FEW_ROWS),
    "with GELU": ("F.gelu(F.linear(x, w))", "(3152, 1024), (4096, 1024)", WITH_GELU),
}


@pytest.mark.parametrize("case", CASES)
def test_tiles_of_halves_take_what_was_measured(case: str) -> None:
    """Half of all tiles within a fifth, and the one that the model likes best is among the fastest."""
    body, shapes, measured = CASES[case]
    given = ", ".join(f"torch.randn({shape}, dtype=torch.bfloat16)" for shape in shapes.strip("()").split("), ("))
    _, graph = traced_text(function(body, given, "x, w"))
    planned = plan_region(graph, tuple(node.name for node in graph.nodes if not is_view(node)))
    sheet = load_sheet("h200")

    def modelled(numbers: tuple[Any, ...]) -> float:
        parameters = {**planned.defaults(sheet.sms), **dict(zip(NUMBERS, numbers, strict=True))}
        return sum(launch_time_us(work, sheet) for work in planned.template.launches(planned.kernel, parameters, sheet))

    times = {numbers: modelled(numbers) for numbers in measured}
    assert statistics.median(abs(times[numbers] / us - 1.0) for numbers, us in measured.items()) <= 0.2
    assert measured[min(times, key=lambda numbers: times[numbers])] <= 1.2 * min(measured.values())


def test_a_bank_of_filters_of_halves_is_generated() -> None:
    """Eight filters of 33 halves are gathered as they are and split by nothing: a kernel of ours is modelled well below the library's."""
    made = "self.conv = torch.nn.Conv1d(1, 8, 33, padding=16).half()"
    source = module(made, "return self.conv(x)", "torch.randn(32, 1, 131072).half()")
    _, graph = traced_text(source, "filters")
    (first,) = modelled_choices(graph, load_sheet("h100"), PrecisionPolicy(), most=1)
    assert first.schedule.regions[0].template == "convolution"
    assert 100.0 < first.us < 250.0


@pytest.mark.parametrize(("words", "left"), [(50264, True), (50257, False)])
def test_the_library_is_slow_where_rows_of_the_result_are_unaligned(words: int, left: bool) -> None:
    """Logits of 50257 words are not left to it, as those of 50264 are."""
    given = f"torch.randn(1024, 768).bfloat16(), torch.randn({words}, 768).bfloat16()"
    _, graph = traced_text(function("F.linear(x, w).float().logsumexp(1)", given, "x, w"))
    first = modelled_choices(graph, load_sheet("h200"), PrecisionPolicy())[0]
    assert left != all(region.is_generated for region in first.schedule.regions)
