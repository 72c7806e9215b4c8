"""The telling part of the logs that candidates and their builds leave."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.logs import own_frames, telling_part

TRACEBACK = """loading
Traceback (most recent call last):
  File "/scratch/candidate.py", line 41, in forward
    out = kernel[grid](x)
  File "/scratch/candidate.py", line 20, in kernel
    raise ValueError("inner")
triton.compiler.errors.CompilationError: at 12:8:
    acc += tl.dot(a, b)
           ^
AssertionError('Both operands must be same dtype')
cleaning up
"""

NVCC = """[1/2] nvcc -c kernel.cu
kernel.cu(14): error: identifier "foo" is undefined
      foo(x);
      ^

1 error detected in the compilation of "kernel.cu".
ninja: build stopped: subcommand failed.
RuntimeError: Error building extension 'candidate'
"""


def test_the_last_exception_is_told_with_what_explains_it() -> None:
    """A Triton compilation error comes with the place it points at, without the frames above it."""
    told = telling_part(TRACEBACK)
    assert told.startswith("triton.compiler.errors.CompilationError: at 12:8:")
    assert "acc += tl.dot(a, b)" in told
    assert "Both operands must be same dtype" in told
    assert "Traceback" not in told


def test_a_compilers_error_comes_before_the_exception_it_caused() -> None:
    """The line of the compiler, its source line, and the exception that ended the build."""
    told = telling_part(NVCC)
    assert told.splitlines()[:2] == ['kernel.cu(14): error: identifier "foo" is undefined', "      foo(x);"]
    assert told.endswith("RuntimeError: Error building extension 'candidate'")
    assert "ninja" not in told


@pytest.mark.parametrize(
    ("log", "told"),
    [
        ("", ""),
        ("\n \n", ""),
        ("only this\n", "only this"),
        ("a\nptxas fatal   : Unresolved extern function 'f'\nb", "ptxas fatal   : Unresolved extern function 'f'"),
        ("start\nCUDA out of memory while allocating\nbye", "CUDA out of memory while allocating"),
        ("start\n\x1b[31mKeyError: 'x'\x1b[0m", "KeyError: 'x'"),
        ("x\nKeyboardInterrupt", "KeyboardInterrupt"),
        ("x\nSegmentation fault (core dumped)\n", "Segmentation fault (core dumped)"),
    ],
)
def test_short_logs(log: str, told: str) -> None:
    """Compiler lines, words of failure, bare exceptions and plain last lines are found; colours are removed."""
    assert telling_part(log) == told


def test_a_long_line_is_cut_in_the_middle() -> None:
    """Both ends stay, since the error's name is at the front and its detail often at the back."""
    told = telling_part("ValueError: " + "x" * 5000 + " the end", limit=100)
    assert len(told) == 100
    assert told.startswith("ValueError: x")
    assert told.endswith(" the end")


@settings(deadline=None)
@given(st.text(max_size=2000), st.integers(1, 700))
def test_any_log_is_told_within_the_limit(log: str, limit: int) -> None:
    """Whatever is logged, the part is no longer than asked."""
    assert len(telling_part(log, limit)) <= limit


def test_only_the_frames_of_a_file_are_left() -> None:
    """Thirty lines of torch's own calls become the one of the kernel that failed; a trace without it stays whole."""
    torch_frame = '  File "/site/torch/nn/modules/module.py", line 1778, in _call_impl\n    return call(*args)\n           ^^^^^\n'
    own = '  File "/scratch/candidate.py", line 4, in forward\n    return x @ y\n           ~~^~~\n'
    head, end = "it said this\nTraceback (most recent call last):\n", "RuntimeError: shapes\n"
    assert own_frames(head + torch_frame + own + torch_frame + end, "/candidate.py") == head + own + end
    assert own_frames(head + torch_frame + end, "/candidate.py") == head + torch_frame + end
