"""What whoever writes a kernel is told of an evaluation."""

from __future__ import annotations

from tests.support.makers import launch, passed, problem, resources, timing
from tools.hardware import load_sheet
from tools.records import Correctness, Evaluation, OutputError, Verdict, WrongElement, WrongOutput
from tools.reports.evaluation import report, telling_lines

SHEET = load_sheet("h200")


def wrong() -> Evaluation:
    """The last columns are zero."""
    error = OutputError(
        output="output0", relative_l2=0.5, worst_row=0.9, reference_relative_l2=1e-7, reference_worst_row=2e-7, limit_relative_l2=4e-7,
        limit_worst_row=8e-7,
    )  # fmt: skip
    off = WrongOutput(
        output="output0", shape=(7, 129), size="rows=7, columns=129", inputs="as made", wrong=7, elements=903, box=((0, 6), (128, 128)),
        first=(WrongElement(index=(0, 128), expected=0.25, got=0.0),), factor=0.0,
    )  # fmt: skip
    found = Correctness(outputs=(error,), calls=9, sizes=("rows=7, columns=129", "as written"), executor="interpreter", wrong=(off,))
    share = "3 of 9 calls are wrong: at rows=7, columns=129; right at as written."
    return Evaluation(candidate="c", verdict=Verdict.WRONG, correctness=found, notes=(share, "Something else."))


def test_a_wrong_kernel_is_shown_where_and_by_how_much() -> None:
    """The first wrong elements, the part of the output they lie in, limits, and which sizes are right."""
    text = report(problem(), wrong(), SHEET, "")
    assert "7 of 903 elements are off, all within index 128 of 129 along dimension 1." in text
    assert "[0, 128]: expected 0.25, got 0" in text
    assert "limit 4e-07" in text
    assert text.count("right at as written") == 1
    assert "Note: Something else." in text


def test_a_right_kernel_is_shown_what_takes_time_and_how_far_the_floor_is() -> None:
    """Its time and tier, baselines, the roofline with what sets it, and each launch with what the compiler gave it."""
    calls = (launch((4096, 1024), (4096, 1024), name="slow"), launch((64, 64), name="quick"))
    kernels = (resources(name="slow", spill_bytes=8), resources(name="quick"))
    text = report(problem(), passed(timing=timing(20.0), launches=calls, kernels=kernels), SHEET, "")
    assert "Time: 20.0 µs (in-process), 12.50x the best baseline; eager 250.0 µs." in text
    assert "Roofline floor on NVIDIA H200: 7.0 µs (every input read once" in text
    assert "this takes 2.86 times that" in text
    assert text.index("  slow grid 4096, 4 warps, 32 registers, 8 B spilled") < text.index("  quick grid 4096")
    assert "estimated" in text
    assert "0.25 of what is allowed" in text


def test_a_kernel_that_does_not_build_is_shown_the_line() -> None:
    """The compiler's words and the line come first, and are not repeated by a note."""
    log = "triton.compiler.errors.CompilationError: at 2:4:\ndef k(x):\n    y = tl.tanh(x)\n    ^\nno attribute 'tanh'\n"
    found = Evaluation(candidate="c", verdict=Verdict.BUILD_FAILED, log=log, notes=("no attribute 'tanh'",))
    text = report(problem(), found, SHEET, "import triton\n\n@triton.jit\ndef k(x):\n    y = tl.tanh(x)\n")
    assert text == "Verdict: BUILD_FAILED\nno attribute 'tanh'\nat line 5 of the file: y = tl.tanh(x)"


def test_a_few_lines_are_enough_to_mend_it() -> None:
    """What a person sees of a failing kernel is its first wrong elements alone; of a right one nothing."""
    assert telling_lines(wrong(), "")[2] == "  [0, 128]: expected 0.25, got 0"
    assert telling_lines(passed(), "") == []
