"""What a call takes beside its kernels."""

from __future__ import annotations

import pytest

from tests.tools.codegen.harness import traced_text
from tests.tools.codegen.samples import function
from tools.codegen import OperatorGraph, Schedule, initial_schedule
from tools.codegen.schedule.copied_numbers import copies_numbers
from tools.cost.call_time import call_us
from tools.cost.rank_schedules import modelled_choices
from tools.hardware import load_sheet, rates
from tools.records import PrecisionPolicy

SHEET = load_sheet("h100")


def first(name: str, numbers: list[int]) -> tuple[OperatorGraph, Schedule]:
    """Name the first choice for what scales columns by numbers of its text."""
    source = function(f"(x * torch.tensor({numbers}, device=x.device)).sin()", f"torch.randn(4096, {len(numbers)})")
    _, graph = traced_text(source, name)
    return graph, modelled_choices(graph, SHEET, PrecisionPolicy())[0].schedule


def test_a_forward_that_copies_numbers_has_no_head_start() -> None:
    """A kernel that reads numbers which a forward copies from the host waits for the copy and for its own launch."""
    graph, schedule = first("read", list(range(100)))
    assert [region.is_generated for region in schedule.regions] == [True]
    assert copies_numbers(graph, schedule)
    assert call_us(graph, schedule, 10.0, SHEET) == pytest.approx(rates.HOST_US + rates.GENERATED_HOST_US + 10.0)


def test_numbers_among_a_kernels_instructions_are_not_copied() -> None:
    """A few numbers that a kernel writes itself cost nothing; where the library multiplies by them, they are copied."""
    graph, schedule = first("few", [8, 5, 5, 8])
    assert not copies_numbers(graph, schedule)
    assert call_us(graph, schedule, 10.0, SHEET) == 10.0
    assert copies_numbers(graph, initial_schedule(graph))
