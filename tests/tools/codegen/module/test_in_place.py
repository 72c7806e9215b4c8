"""What a reference writes to its arguments and buffers is written there, by kernels where that is safe: run in the interpreter."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.codegen.harness import assert_right_at_unseen_sizes, generated, traced_text
from tests.tools.codegen.samples import function
from tools.codegen import Schedule, emit
from tools.codegen.ir.schedule import Region
from tools.codegen.schedule.plan import plan_region

TWO = "torch.randn(ROWS, COLS), torch.randn(ROWS, COLS)"
CACHE = "torch.randn(2 * ROWS, COLS), torch.randn(ROWS, COLS), torch.randperm(2 * ROWS)[:ROWS]"


def body(lines: str, inputs: str = TWO, arguments: str = "x, y") -> str:
    """Write a function of lines divided by `;`."""
    *before, last = [line.strip() for line in lines.split(";")]
    return function(last, inputs, arguments).replace("    return ", "".join(f"    {line}\n" for line in before) + "    return ", 1)


STATE = """import torch

ROWS = 6
COLS = 8


class Model(torch.nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.register_buffer("seen", torch.rand(cols))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.seen.mul_(0.9).add_(x.mean(0), alpha=0.1)
        self.count += 1
        return x - self.seen


def get_inputs():
    return [torch.rand(ROWS, COLS)]


def get_init_inputs():
    return [COLS]
"""

WRITTEN = {
    "a moving average": body("x.mul_(0.9).add_(y, alpha=0.1); x.sum(-1)"),
    "the argument itself is returned": body("x.add_(y); x"),
    "two that are written together": body("x.add_(y); y.copy_(x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)); (y, x)"),
    "what was there before is read again": body("z = x.clone(); x.add_(y); z * x"),
    "a row that others read": body("z = x.softmax(-1); x.sub_(x.amax(-1, keepdim=True)); z + x"),
    "its transpose is read": body("x.add_(x.t().contiguous()); x * 2", "torch.randn(ROWS, ROWS), torch.randn(ROWS, ROWS)"),
    "a slice": body("x[:, 2:5] = y[:, 2:5] * 2; x[1] = 0; x.sum(-1)"),
    "rows of a cache": body("x.index_copy_(0, i, torch.relu(y)); x.amax(-1)", CACHE, "x, y, i"),
    "rows one after the other": body("x[i] = y * 2; x[i] = y * 3; x.amax(-1)", CACHE, "x, y, i"),
    "rows that are read between": body("x[i] = y * 2; z = x.sum(-1); x[i] = y * 3; z + x.amax(-1)", CACHE, "x, y, i"),
    "rows that are moved": body("x[i] = x[i.flip(0)] + y; x.amax(-1)", CACHE, "x, y, i"),
    "pairs that are added": body("x.index_add_(0, i, y).index_add_(0, i.flip(0), -y); x.amax(-1)", CACHE, "x, y, i"),
    "counts": body("x.scatter_add_(0, i, torch.ones_like(i)); x * 2", "torch.arange(ROWS), torch.arange(ROWS).flip(0)", "x, i"),
    "contents that change places": body("z = x.clone(); x.copy_(y); y.copy_(z); x - y"),
    "half precision": body("x.add_(y); x.float().sum(-1)", TWO.replace("COLS)", "COLS).half()", 1)),
    "by another name": body("z = x.contiguous(); s = x.sum(-1); z.mul_(2); s + x.amax(-1)"),
    "a masked part": body("x.masked_fill_(y > 0, -1.0); x.softmax(-1)"),
    "what a mask picks": body("z = x.sum(-1); x[y > 0] = 0; z + x.amax(-1)"),
    "through a view of all": body(
        "x.view(-1).scatter_add_(0, i, y.view(-1)); x * 2", f"{TWO}, torch.arange(ROWS * COLS).flip(0)", "x, y, i"
    ),
    "columns after the whole": body("x.add_(y); x[:, 0].mul_(2); x[:, 1] += x[:, 0]; x.sum(-1)"),
    "one after the other": body("x.copy_(y); y.add_(1); x * y"),
    "a row that all rows read": body("z = x * y; y.mul_(2); z", "torch.randn(ROWS, COLS), torch.randn(COLS)"),
    "buffers": STATE,
}


def test_what_is_written_is_right_at_unseen_sizes(tmp_path: Path) -> None:
    """Results, arguments and buffers are as the reference leaves them."""
    assert_right_at_unseen_sizes(tmp_path, {name.replace(" ", "_"): source for name, source in WRITTEN.items()})


BITS = body("a = x > 0; b = x.view(torch.int32); b.bitwise_and_(-8); a + b + x")


def text(name: str) -> str:
    """Write a sample's kernels."""
    problem, graph = traced_text(WRITTEN.get(name, BITS))
    assert not graph.blocked
    return emit(problem, graph, generated(graph, {})).source


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("a moving average", "    add = x\n"),
        ("two that are written together", "    add = x\n"),
        ("rows of a cache", "    index_copy = x\n"),
        ("rows one after the other", "    index_put = x\n"),
        ("pairs that are added", "= x\n"),
    ],
)
def test_new_contents_are_written_where_they_lie(name: str, line: str) -> None:
    """A kernel that reads an element only before it writes it needs no copy; nor do scatters, one after the other."""
    source = text(name)
    assert line in source
    assert "torch.empty_like(x)" not in source
    assert ".clone(" not in source


@pytest.mark.parametrize("name", ["its transpose is read", "rows that are moved"])
def test_what_is_read_elsewhere_is_written_beside(name: str) -> None:
    """Where another program may still read an element, or a later kernel, new contents are copied at the end."""
    source = text(name)
    assert "    x.copy_(" in source
    assert " is not x:" not in source


def test_what_other_programs_of_the_kernel_read_is_written_beside() -> None:
    """A program a row reads all of the argument, and one of them would write it while another has not begun."""
    problem, graph = traced_text(WRITTEN["a row that all rows read"])
    (store,) = graph.effects
    nodes = tuple(node.name for node in graph.nodes if node.name != store)
    planned = plan_region(graph, nodes, "tile")
    kernel = Region(id="r0", nodes=nodes, template="tile", parameters=planned.defaults(132))
    source = emit(problem, graph, Schedule(regions=(kernel, Region(id="r1", nodes=(store,))))).source
    assert source.count("@triton.jit") == 1
    assert "        y.copy_(" in source
    assert " is not y:" not in source


def test_a_tensor_out_of_order_is_copied_back() -> None:
    """The host puts what is not contiguous in order, so that the kernel has written to a copy."""
    assert "if add is not x:\n            x.copy_(add)\n" in text("a moving average")


def test_what_is_written_as_bits_waits_for_its_readers() -> None:
    """A kernel that reads the argument as numbers runs before, and one that comes later after."""
    forward = text("bits").partition("def forward")[2]
    assert forward.index("gt_op(x)") < forward.index("bitwise_and_.Scalar(view, -8)") < forward.index("add_op(gt, view, x)")
