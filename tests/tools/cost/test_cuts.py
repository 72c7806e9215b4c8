"""Where the cost model cuts a kernel in two rather than make a value again for each place that reads it."""

from __future__ import annotations

from tests.tools.codegen.harness import traced_text
from tests.tools.codegen.samples import function
from tools.codegen import Schedule
from tools.codegen.ir.schedule import Region
from tools.codegen.ir.views import is_view
from tools.codegen.schedule.cuts import cut, far_larger, made_again, read_loops, spread
from tools.codegen.schedule.partition import natural_regions
from tools.cost.rank_schedules import modelled_choices
from tools.hardware import load_sheet
from tools.records import DEFAULT_POLICY

SHEET = load_sheet("h200")
GRID = "torch.randn(64, 512, 1024)"


def _differences(times: int) -> str:
    """Take the limited difference of neighbours so often: each is read from two places by the next."""
    step = "(lambda q: torch.where((q - q.roll(1, -1)) * (q.roll(-1, -1) - q) > 0, torch.tanh(q - q.roll(1, -1)) / (2 + q * q), 0.0))"
    found = "x"
    for _ in range(times):
        found = f"{step}({found})"
    return found


def test_a_stencil_of_stencils_is_several_kernels() -> None:
    """In one kernel the first of four would be made again 81 times for each element of the last."""
    _, graph = traced_text(function(_differences(4), GRID))
    first = modelled_choices(graph, SHEET, DEFAULT_POLICY)[0]
    assert len(natural_regions(graph).regions) == 1
    assert len(first.schedule.regions) > 1
    assert {region.template for region in first.schedule.regions} <= {"tile", "pointwise"}


def test_one_stencil_stays_one_kernel() -> None:
    """Three reads of neighbours are cheaper than a tensor that is written and read."""
    _, graph = traced_text(function(_differences(1), GRID))
    assert len(modelled_choices(graph, SHEET, DEFAULT_POLICY)[0].schedule.regions) == 1


def test_what_is_read_from_several_places_may_be_cut_off() -> None:
    """Neither what all read where it lies nor what only one place reads is made again."""
    _, graph = traced_text(function("(lambda a, b: a[:, 1:] - a[:, :-1] + b[:, 1:].square())(torch.exp(x), torch.sin(x))"))
    (region,) = natural_regions(graph).regions
    assert made_again(graph, region) == ("exp",)


def test_what_a_cut_leaves_may_be_several_kernels() -> None:
    """After a step come the mean of what it began with and the next step: nothing of one is the other's, and no kernel holds both."""
    text = "(lambda a: (x.mean((1, 2)), a.mean((1, 2)), a.roll(1, -2) - a.roll(-1, -2)))(torch.exp(x.roll(1, -1)))"
    _, graph = traced_text(function(text, GRID))
    nodes = tuple(node.name for node in graph.nodes if not is_view(node))
    whole = natural_regions(graph).regions[0].model_copy(update={"id": "r0", "nodes": nodes})
    parts = cut(graph, Schedule(regions=(whole,)), whole, "exp", SHEET.sms)
    assert parts is not None
    assert {"exp", "roll"} in [set(region.nodes) for region in parts.regions]
    assert len(parts.regions) > 2


WINDOWS = """
import torch

WINDOWS, HEADS, SIDE, DIM = 8192, 4, 49, 32
SMALL_SIZES = [{"WINDOWS": 3, "HEADS": 2, "SIDE": 5, "DIM": 8}]


def windowed(q, k, v, table, index):
    place = table[index.view(-1)].view(q.shape[2], q.shape[2], -1).permute(2, 0, 1)
    return (q @ k.mT + 16 * torch.sigmoid(place)).softmax(-1) @ v


def example_inputs():
    shape = (WINDOWS, HEADS, SIDE, DIM)
    return torch.randn(shape), torch.randn(shape), torch.randn(shape), torch.randn(169, HEADS), torch.randint(0, 169, (SIDE, SIDE))
"""


def test_what_all_windows_share_is_made_once() -> None:
    """Places that thousands of tiles of scores are given are looked up by a kernel before them, not by each of them."""
    _, graph = traced_text(WINDOWS, "windowed")
    first = modelled_choices(graph, SHEET, DEFAULT_POLICY)[0]
    (attention,) = (region for region in first.schedule.regions if region.template == "attention")
    ops = {graph.by_name[name].op for name in attention.nodes}
    assert "softmax" in ops
    assert not ops & {"index", "sigmoid"}
    whole = Region(id="r0", nodes=tuple(node.name for node in graph.nodes if not is_view(node)))
    assert [graph.by_name[name].op for name in spread(graph, whole)] == ["mul"]


SORTED = """
import torch

ROWS, SIDE, KEEP = 512, 128, 100
SMALL_SIZES = [{"ROWS": 6, "SIDE": 5, "KEEP": 3}, {"ROWS": 16, "SIDE": 16, "KEEP": 8}]


class Model(torch.nn.Module):
    def __init__(self, keep):
        super().__init__()
        self.keep = keep

    def forward(self, images, scores):
        top, picked = scores.sort(descending=True)
        return top[: self.keep], images[picked[: self.keep]]


def get_inputs():
    return [torch.randn(ROWS, SIDE, SIDE), torch.rand(ROWS)]


def get_init_inputs():
    return [KEEP]
"""


def test_images_are_picked_by_a_kernel_that_does_not_sort() -> None:
    """As many as the constructor says, or as there are, are copied by a kernel of ours, and their order is made once."""
    _, graph = traced_text(SORTED, "sorted_images")
    regions = modelled_choices(graph, SHEET, DEFAULT_POLICY)[0].schedule.regions
    assert [(region.template, *(graph.by_name[name].op for name in region.nodes)) for region in regions] == [
        ("tile", "sort"),
        ("tile", "index"),
    ]


BEAMS = """
import torch

LAYERS, ROWS, BEAMS, HEADS, TIME, DIM = 8, 16, 4, 8, 128, 64


def reordered(cache, tokens, scores, parents, finished, token):
    rows = torch.arange(parents.shape[0], device=parents.device) * parents.shape[1]
    flat = (parents + rows.unsqueeze(1)).view(-1)
    done = finished.gather(1, parents)
    token = token.masked_fill(done, 2)
    tokens = torch.cat([tokens.index_select(0, flat), token.view(-1, 1)], -1)
    lengths = (tokens != 2).sum(-1).view(parents.shape)
    best, order = (scores / ((5.0 + lengths.to(scores.dtype)) / 6.0) ** 0.6).sort(1, descending=True)
    return cache.index_select(1, flat), tokens, done | token.eq(2), best, order


def example_inputs():
    beams = ROWS * BEAMS
    tokens, parents = torch.randint(0, 100, (beams, TIME)), torch.randint(0, BEAMS, (ROWS, BEAMS))
    cache = torch.randn(LAYERS, beams, HEADS, TIME, DIM, dtype=torch.float16)
    return cache, tokens, torch.randn(ROWS, BEAMS), parents, torch.rand(ROWS, BEAMS) < 0.3, parents + 1
"""


def test_a_small_result_is_not_made_for_each_tile_of_a_large_one() -> None:
    """A cache's rows are picked by the same places as those of tokens, which are counted: one kernel would sort for each tile of it."""
    _, graph = traced_text(BEAMS, "reordered")
    whole = natural_regions(graph).regions[0].model_copy(update={"nodes": tuple(node.name for node in graph.nodes if not is_view(node))})
    (large,) = (node.name for node in graph.nodes if node.op == "index_select" and len(node.outputs[0].shape) == 5)
    assert far_larger(graph, whole)[0] == large
    first = modelled_choices(graph, SHEET, DEFAULT_POLICY)[0]
    (copying,) = (one for one in first.schedule.regions if large in one.nodes)
    assert "sort" not in copying.nodes


MIXED = """
import torch

ROWS, STREAMS, HIDDEN = 4096, 4, 2048


def mixed(scores, x):
    shares = torch.exp(scores - scores.amax(-1, keepdim=True))
    for _ in range(20):
        shares = shares / shares.sum(-1, keepdim=True)
        shares = shares / shares.sum(-2, keepdim=True)
    return (shares.unsqueeze(-1) * x.unsqueeze(1)).sum(2)


def example_inputs():
    return torch.randn(ROWS, STREAMS, STREAMS), torch.randn(ROWS, STREAMS, HIDDEN)
"""


def test_a_loop_is_not_walked_for_each_part_of_what_reads_it() -> None:
    """Twenty steps on a few numbers are made once, and not for each tile of the wide rows that they mix."""
    _, graph = traced_text(MIXED, "mixed")
    (region,) = natural_regions(graph).regions
    assert [graph.by_name[name].op for name in read_loops(graph, region)] == ["recurrence"]
    first = modelled_choices(graph, SHEET, DEFAULT_POLICY)[0]
    assert [one.template for one in first.schedule.regions] == ["recurrence", "tile"]
