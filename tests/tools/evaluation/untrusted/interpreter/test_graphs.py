"""CUDA graphs of interpreted kernels: a capture does nothing, a replay does what was captured."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

WRITTEN = """
import torch, triton, triton.language as tl
from tools.evaluation.untrusted.interpreter import graphs

graphs.install()

@triton.jit
def double(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, 2 * tl.load(x_ptr + at))

x, count = torch.arange(4.0), torch.zeros(1)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    assert torch.cuda.is_current_stream_capturing()
    out = torch.empty_like(x)
    double[(1,)](x, out, N=4)
    count.add_(1)
    found = (out + count)[1:]
"""


def _ran(text: str, folder: Path) -> None:
    """Run it in a process of its own, which is left as it is."""
    file = folder / "graphs.py"
    file.write_text(WRITTEN + text)
    env = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(Path(__file__).parents[5])}
    done = subprocess.run([sys.executable, str(file)], env=env, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("assert count == 0 and found.isnan().all() and not torch.cuda.is_current_stream_capturing()", id="nothing at first"),
        pytest.param("graph.replay(); graph.replay(); assert count == 2 and found.tolist() == [4.0, 6.0, 8.0]", id="what was captured"),
        pytest.param("x.add_(1); graph.replay(); assert found.tolist() == [5.0, 7.0, 9.0]", id="on what lies there now"),
    ],
)
def test_a_graph_does_on_the_cpu_what_it_does_on_a_device(text: str, tmp_path: Path) -> None:
    """Operators, writes in place, views and launches happen at each replay, and at no other time."""
    _ran(text, tmp_path)


def test_what_waits_for_the_device_cannot_be_captured(tmp_path: Path) -> None:
    """Reading a number from a tensor is an error there, as on a device."""
    text = """
try:
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        x.sum().item()
except RuntimeError as error:
    assert "stream is capturing" in str(error)
else:
    raise AssertionError
"""
    _ran(text, tmp_path)
