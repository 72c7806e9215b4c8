"""What passes that write parts of float32 operands are taken to cost."""

from __future__ import annotations

from tools.codegen.templates.shared.split_float import SPLIT_FLOATS
from tools.codegen.templates.shared.split_pass import split_pass
from tools.cost.launch_time import launch_time_us
from tools.hardware import load_sheet

SHEET = load_sheet("h100")


def _us(precision: str, vectors: int, summed: int, *, across: bool) -> float:
    return launch_time_us(split_pass(SPLIT_FLOATS[precision], vectors, summed, SHEET, across=across), SHEET)


def test_few_long_vectors_side_by_side_take_long() -> None:
    """Few programs walk them, a sector of eight each; 524,288 elements of 256 columns took 11 ms of a call (an H100), 32 a program."""
    assert _us("fp16x3", 256, 524288, across=True) > 5 * _us("fp16x3", 524288, 256, across=False)


def test_parts_without_exponents_take_as_long_as_their_bytes() -> None:
    """How many vectors they are of makes no difference."""
    assert _us("bf16x6", 256, 524288, across=True) == _us("bf16x6", 524288, 256, across=False)
