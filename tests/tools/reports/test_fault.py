"""At which line of a file a compiler or an exception stopped."""

from __future__ import annotations

import pytest

from tools.reports.fault import fault_of, fault_text

SOURCE = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    y = tl.tanh(tl.load(x_ptr + at))


def forward(x):
    kernel[(1,)](x, BLOCK=64)
"""
TRITON = """File "/scratch/candidate.py", line 12, in forward
    kernel[(1,)](x, BLOCK=64)
triton.compiler.errors.CompilationError: at 3:8:
def kernel(x_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    y = tl.tanh(tl.load(x_ptr + at))
        ^
AttributeError("module 'triton.language' has no attribute 'tanh'")
"""
INSIDE = (
    TRITON.partition("AttributeError")[0]
    + """triton.compiler.errors.CompilationError: at 31:11:
def zeros(shape, dtype):
    return core.full(shape, 0, dtype)
           ^
Shape element 0 must be a power of 2
ValueError: Shape element 0 must be a power of 2
"""
)
RAISED = """Traceback (most recent call last):
  File "/work/runner.py", line 292, in run
  File "/scratch/candidate.py", line 12, in forward
    kernel[(1,)](x, BLOCK=64)
NameError: name 'kernel_' is not defined
"""
CASES = {
    "the compiler": (TRITON, 8, "AttributeError(\"module 'triton.language' has no attribute 'tanh'\")"),
    "the compiler, inside of one of Triton's own functions": (INSIDE, 8, "Shape element 0 must be a power of 2"),
    "an exception": (RAISED, 12, "NameError: name 'kernel_' is not defined"),
    "a signal": ("Killed", 0, "Killed"),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_failure_is_told_at_its_line_of_the_file(case: str) -> None:
    """Whatever failed, its words stand beside the line of the candidate's own file, as it is written there."""
    log, line, message = CASES[case]
    found = fault_of(log, SOURCE)
    assert (found.line, found.message) == (line, message)
    assert found.text == (SOURCE.splitlines()[line - 1].strip() if line else "")
    assert (f"at line {line} of the file" in fault_text(found)) == bool(line)


def test_a_source_that_does_not_parse_has_no_lines() -> None:
    """Of a file that is no Python the words alone are told."""
    assert fault_of(TRITON, "def (").line == 0
