"""Operators whose kernels a compiler sees: which they are, and what stands in its graph."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.models.packaging.launches import launches

KERNEL = """import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def scale_kernel(x_ptr, weight_ptr, y_ptr, n_cols, BLOCK_N: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_N)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask)
    tl.store(y_ptr + row * n_cols + cols, x * tl.load(weight_ptr + cols, mask=mask), mask=mask)


def scale(x, weight):
    y = torch.empty_like(x)
    scale_kernel[(x.shape[0],)](x, weight, y, x.shape[1], BLOCK_N=triton.next_power_of_2(x.shape[1]), num_warps=1)
    return y


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(16))

    def forward(self, x):
        return scale(x, self.weight)
"""
GRAPH = """
import sys

import torch
import triton
from torch._dynamo.backends.common import aot_autograd
from triton.backends.compiler import GPUTarget

from tools.models.runtime.operators import KernelOperator
from tools.models.runtime.visible import show


class Driver:
    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)


triton.runtime.driver.set_active(Driver())
sys.path.insert(0, sys.argv[1])
one = KernelOperator("visible", "scale", "scaling", 1, ("weight",), lambda x: [x.new_empty(x.shape)], ("scale_kernel",))


def targets():
    seen = []

    def compiler(graph, example):
        seen.extend(str(node.target) for node in graph.graph.nodes if node.op == "call_function")
        shapes = [tuple(node.meta["val"].shape) for node in graph.graph.output_node().args[0]]
        return lambda *given: [torch.zeros(shape) for shape in shapes]

    torch._dynamo.reset()
    backend = aot_autograd(fw_compiler=compiler, inference_compiler=compiler)
    with torch.no_grad():
        torch.compile(lambda *given: one.call(*given), backend=backend, fullgraph=True)(torch.randn(4, 16), torch.randn(16))
    return [name.partition(".")[0] for name in seen if "getitem" not in name]


print(*targets())
show(shown=False)
print(*targets())
"""


def test_kernels_are_seen_where_host_code_does_nothing_else() -> None:
    """Launches, empty tensors and PyTorch's own operators are understood."""
    assert launches(KERNEL) == ("scale_kernel",)
    halved = KERNEL.replace("    y = torch.empty_like(x)\n", "    y = torch.empty_like(x.chunk(2, -1)[0].float())\n")
    assert launches(halved) == ("scale_kernel",)


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("    y = torch.empty_like(x)\n", "    y = torch.empty_like(x)\n    torch.cuda.synchronize()\n"),
        ("    y = torch.empty_like(x)\n", "    y = torch.empty_like(x)\n    assert x.data_ptr() % 16 == 0\n"),
        ("        return scale(x, self.weight)", "        self.kept = self.weight\n        return scale(x, self.kept)"),
        ("@triton.jit", "@triton.autotune(configs=[], key=[])\n@triton.jit\ndef other(): pass\n\n\n@decorated"),
        ("def scale(x, weight):\n", "def scale(x, weight):\n    global seen\n"),
    ],
)
def test_host_code_that_a_compiler_would_not_understand_keeps_an_operator_whole(was: str, becomes: str) -> None:
    """Waiting, addresses, what is kept from call to call, other decorators, globals."""
    assert was in KERNEL
    assert launches(KERNEL.replace(was, becomes)) == ()


def test_a_compiler_gets_the_launches_into_its_graph(tmp_path: Path) -> None:
    """The operator is gone from the graph, its kernel stands there; switched off, the operator stands there whole."""
    (tmp_path / "scaling.py").write_text(KERNEL)
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    root = str(Path(__file__).parents[3])
    found = subprocess.run(
        [sys.executable, "-c", GRAPH, str(tmp_path)],
        env=environment | {"PYTHONPATH": root},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert found.stdout.splitlines() == ["aten triton_kernel_wrapper_functional", "visible"], found.stderr[-2000:]
