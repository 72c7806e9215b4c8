"""CUDA graphs of interpreted kernels: a capture does nothing, a replay does what was captured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
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

from tests.support import forking

def ask(text, said):
    forking.print_into(said)
    exec(text, globals())

forking.serve(ask)
"""
NUMBER = """
try:
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        {waits}
except RuntimeError as error:
    assert "stream is capturing" in str(error)
else:
    raise AssertionError
"""
Ask = Callable[[str], None]


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """Run a text after the capture; each in a fork of one process, whose torch nobody else uses."""
    folder = tmp_path_factory.mktemp("graphs")
    file, said = folder / "graphs.py", folder / "said.txt"
    file.write_text(WRITTEN)
    env = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[5])}
    with subprocess.Popen([sys.executable, str(file)], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def run(text: str) -> None:
            print(json.dumps([text, str(said)]), file=process.stdin, flush=True)
            assert process.stdout.readline() == "0\n", said.read_text()

        yield run
        process.stdin.close()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("assert count == 0 and found.isnan().all() and not torch.cuda.is_current_stream_capturing()", id="nothing at first"),
        pytest.param("graph.replay(); graph.replay(); assert count == 2 and found.tolist() == [4.0, 6.0, 8.0]", id="what was captured"),
        pytest.param("x.add_(1); graph.replay(); assert found.tolist() == [5.0, 7.0, 9.0]", id="on what lies there now"),
    ],
)
def test_a_graph_does_on_the_cpu_what_it_does_on_a_device(ask: Ask, text: str) -> None:
    """Operators, writes in place, views and launches happen at each replay, and at no other time."""
    ask(text)


@pytest.mark.parametrize("waits", ["x.sum().item()", "x.long().bincount(minlength=9)", "torch.linalg.cholesky(x.diag() + 1)", "x.unique()"])
def test_what_waits_for_the_device_cannot_be_captured(ask: Ask, waits: str) -> None:
    """Reading a number from a tensor is an error there, as on a device, and so is what reads one itself."""
    ask(NUMBER.format(waits=waits))
