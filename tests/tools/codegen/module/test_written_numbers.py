"""A few numbers of the source that the library reads are written by a kernel: copied from the host they would wait for the device."""

from __future__ import annotations

from pathlib import Path

from tests.tools.codegen.harness import generated, run_worker, traced_text, write_job
from tests.tools.codegen.samples import function
from tools.codegen import OperatorGraph, Schedule, emit, initial_schedule
from tools.codegen.schedule.copied_numbers import copies_numbers, written_numbers
from tools.cost.call_time import call_us, counted
from tools.hardware import load_sheet, rates

FILTER = "F.conv2d(x, torch.tensor([[1.0, 0.1, 1.5], [0.1, -2.0, 1.0], [0.0, 1.0, 0.1]], dtype=x.dtype)[None, None], padding=1).sin()"
SHEET = load_sheet("h100")


def left(graph: OperatorGraph) -> Schedule:
    """Generate what follows the convolution, which stays the library's."""
    return generated(graph, {"pointwise": {}}).replaced(initial_schedule(graph).regions[0])


def test_a_kernel_writes_what_the_library_reads(tmp_path: Path) -> None:
    """The forward copies nothing from the host, and its numbers are the source's."""
    problem, graph = traced_text(function(FILTER, "torch.randn(2, 1, 12, 16)"), "filter")
    source = emit(problem, graph, left(graph)).source
    assert "torch.tensor(" not in source
    assert "tl.full([16], 1.0, tl.float32)" in source
    (result,) = run_worker("interpreter_worker.py", [write_job(tmp_path, "filter", problem, source)], interpret=True)
    assert "crash" not in result, result["crash"]
    assert result["error"] <= 1.0


def test_written_numbers_are_a_launch_and_keep_the_head_start() -> None:
    """They count as one generated launch; a forward without kernels copies them as the reference does."""
    _, graph = traced_text(function(FILTER, "torch.randn(2, 1, 12, 16)"), "filter")
    schedule = left(graph)
    assert not copies_numbers(graph, schedule)
    assert written_numbers(graph, schedule) == 1
    assert counted(graph, schedule) == (3, 2)
    assert call_us(graph, schedule, 10.0, SHEET) == 10.0 + rates.KERNEL_US
    assert copies_numbers(graph, initial_schedule(graph))
