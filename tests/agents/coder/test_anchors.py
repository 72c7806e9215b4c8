"""Anchors: what of a parent may change, and that nothing else does."""

from __future__ import annotations

from agents.coder.anchors import anchored, find_anchors, outside_change, read_parts, replaced, without_marks
from agents.samples.sources import CUDA_KERNEL, KERNEL
from agents.sources.cuda import cuda_kernels

SOFTMAX = find_anchors(KERNEL, "softmax_kernel")


def test_a_kernel_and_its_callers_are_marked() -> None:
    """The function that a region names is marked with its decorator, and the method that launches it; marks come off again."""
    marked = anchored(KERNEL, SOFTMAX)
    assert marked.count(">>> part") == 2
    assert "# >>> part 1\n@triton.jit\ndef softmax_kernel" in marked
    assert "    # >>> part 2\n    def forward" in marked
    assert without_marks(marked) == KERNEL


def test_cuda_kernels_are_marked_in_their_strings() -> None:
    """In CUDA C++ the kernel and the function that launches it are marked, with comments of that language."""
    assert cuda_kernels(CUDA_KERNEL) == ("softmax_kernel",)
    marked = anchored(CUDA_KERNEL, find_anchors(CUDA_KERNEL, "softmax_kernel"))
    first, second = read_parts(marked).values()
    assert first.startswith("// out[row] = softmax(2 x[row])\n__global__ void")
    assert first.rstrip().endswith("}")
    assert second.startswith("void launch_softmax")
    assert without_marks(marked) == CUDA_KERNEL


def test_an_unknown_region_marks_nothing() -> None:
    """Where the source has no function of that name, or is no Python, nothing is marked."""
    assert find_anchors(KERNEL, "r0") == ()
    assert find_anchors("def broken(:", "broken") == ()


def test_parts_take_the_place_of_what_was_marked() -> None:
    """The parts of an answer, and only those, replace the parent's."""
    parts = read_parts("    # >>> part 2\n    def forward(self, x):\n        return x\n    # <<< part 2\n")
    new, complaint = replaced(KERNEL, SOFTMAX, parts)
    assert complaint == ""
    assert "        return x\n" in new
    assert "def softmax_kernel" in new
    assert outside_change(KERNEL, SOFTMAX, new) == ""


def test_a_part_that_does_not_exist_is_refused() -> None:
    """A number that the parent has no part for is named."""
    assert "There is no part 3: the parent has 2 marked." in replaced(KERNEL, SOFTMAX, {3: "x = 1\n"})[1]


def test_changes_within_are_free() -> None:
    """A whole file may change its marked functions, and add others there: what stands right beside a part counts as in it."""
    new = KERNEL.replace("@triton.jit", "import math\n\n\n@triton.jit\ndef helper(x):\n    return x\n\n\n@triton.jit", 1)
    assert outside_change(KERNEL, SOFTMAX, new) == ""


def test_changes_outside_are_named() -> None:
    """A line that was changed, left out or added outside is refused with the place."""
    assert "import triton.language as tl" in outside_change(KERNEL, SOFTMAX, KERNEL.replace("import triton.language as tl", "import numpy"))
    assert "class ModelNew" in outside_change(KERNEL, SOFTMAX, KERNEL.replace("class ModelNew(torch", "class ModelNew(object, torch"))
    assert outside_change(KERNEL, SOFTMAX, KERNEL.replace("import triton\n", "import triton\nimport os\n"))
    assert outside_change(KERNEL, SOFTMAX, "import os\n" + KERNEL)


def test_blank_lines_do_not_count() -> None:
    """Blank lines and spaces at the end of a line are no change."""
    assert outside_change(KERNEL, SOFTMAX, KERNEL.replace("\n\n\n", "\n\n").replace("import torch\n", "import torch  \n")) == ""


HOST = (
    KERNEL.replace(
        "class ModelNew",
        "def run(x):\n    y = torch.empty_like(x)\n    softmax_kernel[(8,)](x, y, 8, BLOCK_N=8)\n    return y\n\n\nclass ModelNew",
    ).split("        y = torch")[0]
    + "        return run(x)\n"
)
"""The kernel is launched by a function of its own, so that forward names neither."""


def test_weights_may_be_packed_wherever_a_kernel_may_change() -> None:
    """A method that packs weights can be added to ModelNew, and forward can use it, whatever stands between it and the kernel."""
    anchors = find_anchors(HOST, "softmax_kernel")
    packing = "    def pack_weights(self):\n        self.packed = 1\n\n    def forward(self, x):\n        self.packed\n"
    new = HOST.replace("    def forward(self, x):\n", packing)
    assert new != HOST
    assert outside_change(HOST, anchors, new) == ""
    assert "class ModelNew" in outside_change(HOST, anchors, new.replace("(torch.nn.Module)", "(object)"))
