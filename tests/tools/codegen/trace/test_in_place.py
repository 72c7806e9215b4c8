"""What a reference writes in place: in whose memory that lies, and who reads it afterwards."""

from __future__ import annotations

import pytest

from tests.tools.codegen.harness import problem_of, traced_text
from tests.tools.codegen.samples import function
from tools.codegen import OperatorGraph, emit, initial_schedule, trace
from tools.codegen.trace.program_reader import MENDED

SOURCE = """
import torch

SMALL_SIZES = []


def written(x):
    y = x @ x
{body}


def example_inputs():
    return (torch.rand(16, 16),)
"""


def traced(body: str) -> OperatorGraph:
    """Trace a function of a product `y`, its lines divided by `;`."""
    lines = "\n".join(f"    {line.strip()}" for line in body.split(";"))
    return trace(problem_of(SOURCE.format(body=lines), "written"))


TAKEN = {
    "a view that had to be copied": "a = y.flatten()[:-1].view(15, 17)[:, 1:].flatten(); a.pow_(2); return a.sum() + y.sum()",
    "turned and laid out anew": "a = y.t().contiguous(); a.mul_(2); return a + y",
    "memory that nobody else reads": "a = y.view(4, 64); a.mul_(2); return a.sum(1)",
    "a part of a view that nobody else reads": "a = y.view(4, 64); a[:, 3:9] = 0; return a.sum(1)",
    "pieces that were cut before": "a, b = y.chunk(2, 1); a.add_(b); b.clamp_(min=0); return y * 2",
    "a piece beside one that was written": "a, b = y.split([5, 11], dim=-1); a.mul_(2); return y.sum() + b.sum()",
    "parts of a view, one after the other": "a = y.view(4, 64); a[0] += 1; a[1:3] *= 2; return a",
}


@pytest.mark.parametrize("name", TAKEN)
def test_what_is_written_in_its_own_memory_is_traced(name: str) -> None:
    """A write whose memory no value shares that is read later is a value of its own."""
    assert not traced(TAKEN[name]).blocked


REFUSED = {
    "memory by its strides": "a = y.as_strided((16,), (17,)); a.mul_(2); return y + a.sum()",
    "the diagonal of no square": "y = y[:, 1:] + 0; y.diagonal().fill_(3); return y + 1",
    "windows that overlap": "a = y.unfold(1, 4, 2); a[:, 0] = 1; return y + a.sum()",
    "a view of what was lost": "a = y.view(-1); a.as_strided((16,), (17,)).mul_(2); return a.view(16, 16)",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_read_after_it_was_overwritten_is_left_to_pytorch(name: str) -> None:
    """A value whose memory was written by another name is never taken as it was before."""
    assert traced(REFUSED[name]).blocked


GRU = """
import torch


class Model(torch.nn.Module):
    def __init__(self, features, layers):
        super().__init__()
        self.rnn = torch.nn.GRU(features, features, layers)
        self.first = torch.randn(layers, 4, features)

    def forward(self, x, first):
        return self.rnn(x, first)[0]


def get_inputs():
    return [torch.rand(16, 4, 8), torch.rand(2, 4, 8)]


def get_init_inputs():
    return [8, 2]
"""

STATE = """
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = torch.zeros(8, 16)
        self.step = torch.nn.Linear(24, 16)

    def forward(self, x, hidden):
        self.hidden.copy_(hidden)
        self.hidden = torch.tanh(self.step(torch.cat((x, self.hidden), dim=1)))
        return self.hidden * 2


def get_inputs():
    return [torch.rand(8, 8), torch.rand(8, 16)]


def get_init_inputs():
    return []
"""


def test_running_means_that_are_arguments_are_left_to_pytorch() -> None:
    """A batch norm writes them while it trains, as any operator in place would; one that only reads them is generated."""
    text = function("F.batch_norm(x, m, v, training={})", "torch.randn(ROWS, COLS), torch.randn(COLS), torch.rand(COLS)", "x, m, v")
    assert traced_text(text.format(True))[1].blocked == (f"aten.batch_norm.default writes to an argument: {MENDED}",)
    assert not traced_text(text.format(False))[1].blocked


MENDS = {
    "clone": function("y", arguments="x").replace("    return y", "    y = x.clone()\n    y[:, 0] = 2.0\n    return y * 2"),
    "buffer": """import torch

ROWS = 6


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(8))

    def forward(self, x):
        self.seen.copy_(x.sum(0))
        return x * 2


def get_inputs():
    return [torch.rand(ROWS, 8)]


def get_init_inputs():
    return []
""",
}


@pytest.mark.parametrize("way", MENDS)
def test_what_the_refusal_says_to_write_instead_is_traced(way: str) -> None:
    """A write to a copy of an argument, and one to a buffer of the module, are no writes to an argument."""
    assert f".{way}" in MENDED or f"register_{way}" in MENDED
    assert traced_text(MENDS[way], way)[1].blocked == ()


def test_a_tensor_that_a_forward_assigns_to_its_module_is_traced() -> None:
    """State that a module keeps as a plain attribute is written, and what reads it is generated."""
    graph = trace(problem_of(STATE, "Model"))
    assert not graph.blocked
    assert {"tanh", "cat"} <= {node.target.split(".")[1] for node in graph.nodes}


def test_a_plain_tensor_leaves_operators_whole() -> None:
    """A recurrent layer beside one is one operator, and is not written out step by step."""
    assert [node.op for node in trace(problem_of(GRU, "Model")).nodes if node.op not in ("getitem", "detach")] == ["gru"]


def test_plain_tensors_are_where_the_arguments_are() -> None:
    """`module.to(device)` leaves them where they were made: a forward that reads them brings them along, and packs nothing of them."""
    graph = trace(problem_of(STATE, "Model"))
    assert {graph.parameters[name] for name in graph.plain} == {"hidden"}
    assert not graph.plain & graph.fixed
    source = emit(problem_of(STATE, "Model"), graph, initial_schedule(graph)).source
    first = source.split("def forward(self, x: torch.Tensor, hidden: torch.Tensor):\n")[1].split("\n")[0]
    assert first.strip() == "self.hidden = self.hidden.to(x.device)"
    unused = trace(problem_of(GRU, "Model"))
    assert "self.first.to(" not in emit(problem_of(GRU, "Model"), unused, initial_schedule(unused)).source
