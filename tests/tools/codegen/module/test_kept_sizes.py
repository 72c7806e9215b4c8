"""Sizes that only the constructor kept, as the width of a group, are given to the host function of what is made before they are needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.codegen.harness import generated, run_worker, traced_at_all_sizes, unseen, write_job
from tests.tools.codegen.templates.test_memory_bound import SETTINGS
from tools.codegen import Region, Schedule, emit, initial_schedule
from tools.codegen.schedule.plan import plan_region

HEAD = """import torch
import torch.nn.functional as F
from torch import nn

"""
CODES = f"""{HEAD}ROWS = 8
GROUPS = 6
GROUP = 32
SMALL_SIZES = [{{"ROWS": 5, "GROUPS": 3, "GROUP": 16}}, {{"ROWS": 4, "GROUPS": 5, "GROUP": 8}}]


class Model(nn.Module):
    def __init__(self, group):
        super().__init__()
        self.group = group

    def forward(self, x):
        gate, up = x.chunk(2, dim=-1)
        y = (F.silu(gate) * up).view(x.shape[0], -1, self.group)
        scale = y.abs().amax(-1, keepdim=True).clamp(min=1e-4) / 127.0
        return (y / scale).view(x.shape[0], -1), scale.squeeze(-1)


def get_inputs():
    return [torch.randn(ROWS, 2 * GROUPS * GROUP)]


def get_init_inputs():
    return [GROUP]
"""


def run(folder: Path, sources: list[str], problem_text: str) -> None:
    """Run sources at sizes that no trace saw."""
    jobs = [write_job(folder, f"job_{place}", unseen(problem_text), source) for place, source in enumerate(sources)]
    for result in run_worker("interpreter_worker.py", jobs, interpret=True):
        assert "crash" not in result, result["crash"]
        assert result["error"] <= 1.0


def test_groups_of_what_is_made_share_its_kernel() -> None:
    """An activation and the scales of its groups are one region, whose host function takes the width of a group."""
    problem, graph = traced_at_all_sizes(CODES)
    assert len(initial_schedule(graph).regions) == 1
    source = emit(problem, graph, generated(graph, {})).source
    assert "given_0: int" in source
    assert "self.group)" in source


@pytest.mark.slow
def test_groups_follow_the_constructor(tmp_path: Path) -> None:
    """Codes and scales are right at a width of groups that no trace saw, of operands that lie apart, in each way along a row."""
    problem, graph = traced_at_all_sizes(CODES)
    sources = [emit(problem, graph, generated(graph, SETTINGS[way])).source for way in ("blocks", "shared", "whole", "l2_two_pass")]
    run(tmp_path, sources, CODES.replace("ROWS = 8", "ROWS = 3").replace("GROUPS = 6", "GROUPS = 1").replace("GROUP = 32", "GROUP = 20"))


PARTS = f"""{HEAD}ROWS = 16
A = 6
B = 8
C = 12
SMALL_SIZES = [{{"ROWS": 5, "A": 3, "B": 4, "C": 5}}, {{"ROWS": 4, "A": 5, "B": 2, "C": 7}}]


class Model(nn.Module):
    def __init__(self, b, c):
        super().__init__()
        self.b, self.c = b, c

    def forward(self, x):
        y = torch.tanh(x).view(x.shape[0], -1, self.b, self.c)
        return y.sum(-1), torch.softmax(y, 1)


def get_inputs():
    return [torch.randn(ROWS, A * B * C)]


def get_init_inputs():
    return [B, C]
"""


def test_the_rest_of_a_dimension_follows_from_two_kept_sizes(tmp_path: Path) -> None:
    """Of three parts of a dimension the constructor keeps two: a kernel of tiles takes both, and what is left is the first."""
    problem, graph = traced_at_all_sizes(PARTS)
    source = emit(problem, graph, generated(graph, {})).source
    assert "given_1: int" in source
    run(tmp_path, [source], PARTS.replace("A = 6", "A = 7").replace("B = 8", "B = 3").replace("C = 12", "C = 9"))


HEADS = f"""{HEAD}BATCH = 8
HEADS = 16
WIDE = 12
SMALL_SIZES = [{{"BATCH": 2, "HEADS": 4, "WIDE": 8}}]


class Model(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.heads = heads

    def forward(self, x):
        y = F.silu(x).view(x.shape[0], x.shape[1], self.heads, -1)
        return y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)


def get_inputs():
    return [torch.randn(BATCH, 5, HEADS * WIDE)]


def get_init_inputs():
    return [HEADS]
"""


def test_a_kept_size_is_not_guessed_from_shapes(tmp_path: Path) -> None:
    """Heads that are twice the batch at every size that was traced are as many as the constructor kept at others."""
    problem, graph = traced_at_all_sizes(HEADS)
    source = emit(problem, graph, generated(graph, {})).source
    run(tmp_path, [source], HEADS.replace("BATCH = 8", "BATCH = 3").replace("HEADS = 16", "HEADS = 5"))


def test_a_size_that_nothing_needs_is_not_taken() -> None:
    """Where a dimension is one again in the end, and each element is by itself, the host function takes tensors alone."""
    one = PARTS.replace("return y.sum(-1), torch.softmax(y, 1)", "return (y * 2).view(x.shape[0], -1) + x")
    problem, graph = traced_at_all_sizes(one)
    source = emit(problem, graph, generated(graph, {})).source
    assert "given_" not in source
    assert "@triton.jit" in source


FRAMES = f"""{HEAD}ROWS = 4
COLS = 4096
WIDTH = 64
SMALL_SIZES = [{{"ROWS": 2, "COLS": 48, "WIDTH": 16}}, {{"ROWS": 3, "COLS": 128, "WIDTH": 32}}]


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.hop = width // 4
        self.register_buffer("window", torch.hann_window(width))

    def forward(self, x):
        width = self.window.shape[0]
        frames = x.unfold(1, width, self.hop) * self.window
        shape = {{"output_size": (1, x.shape[1]), "kernel_size": (1, width), "stride": (1, self.hop)}}
        weight = F.fold(self.window.expand(1, frames.shape[1], -1).transpose(1, 2), **shape)
        return F.fold(frames.transpose(1, 2), **shape) / weight.clamp(min=1e-3)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return [WIDTH]
"""


def test_how_many_windows_there_are_is_read_where_they_are_made(tmp_path: Path) -> None:
    """Neither shapes of inputs nor what the constructor kept tell how many windows overlap: what is made of them has as many."""
    problem, graph = traced_at_all_sizes(FRAMES)
    source = emit(problem, graph, initial_schedule(graph)).source
    assert "expand(1, unfold.shape[1], -1)" in source
    run(tmp_path, [source], FRAMES.replace("COLS = 4096", "COLS = 60").replace("WIDTH = 64", "WIDTH = 12"))


CHUNKS = f"""{HEAD}BATCH = 2
SEQ = 64
WIDE = 24
CHUNK = 16
SMALL_SIZES = [{{"BATCH": 1, "SEQ": 12, "WIDE": 6, "CHUNK": 4}}, {{"BATCH": 2, "SEQ": 24, "WIDE": 20, "CHUNK": 8}}]


class Model(nn.Module):
    def __init__(self, chunk):
        super().__init__()
        self.chunk = chunk

    def forward(self, x, y):
        b, l, n = x.shape
        x, y = (each.view(b, l // self.chunk, self.chunk, n) for each in (x, y))
        return MADE


def get_inputs():
    return [torch.randn(BATCH, SEQ, WIDE), torch.randn(BATCH, SEQ, WIDE)]


def get_init_inputs():
    return [CHUNK]
"""


@pytest.mark.parametrize(("made", "template"), [("x @ y.transpose(2, 3)", "matmul"), ("torch.sigmoid(x) @ y.transpose(2, 3)", "product")])
def test_products_of_chunks_are_given_how_long_one_is(made: str, template: str, tmp_path: Path) -> None:
    """Neither operand of a product of chunks has their length as a size: its host function takes what the constructor kept."""
    problem, graph = traced_at_all_sizes(CHUNKS.replace("MADE", made))
    nodes = tuple(node.name for node in graph.nodes if node.op in ("matmul", "sigmoid"))
    parameters = plan_region(graph, nodes).defaults(132)
    schedule = Schedule(regions=(Region(id="r0", nodes=nodes, template=template, parameters=parameters),))
    source = emit(problem, graph, schedule).source
    assert "given_0: int" in source
    sizes = {"SEQ = 64": "SEQ = 35", "WIDE = 24": "WIDE = 9", "CHUNK = 16": "CHUNK = 5"}
    text = CHUNKS.replace("MADE", made)
    for old, new in sizes.items():
        text = text.replace(old, new)
    run(tmp_path, [source], text)


PLACES = f"""{HEAD}BATCH = 4
HEIGHT = 48
WIDTH = 64
PATCH = 16
GRID = 6
WIDE = 24
SMALL_SIZES = [
    {{"BATCH": 1, "HEIGHT": 8, "WIDTH": 12, "PATCH": 4, "GRID": 3, "WIDE": 8}},
    {{"BATCH": 2, "HEIGHT": 16, "WIDTH": 8, "PATCH": 2, "GRID": 4, "WIDE": 16}},
]


class Model(nn.Module):
    def __init__(self, patch, grid, wide):
        super().__init__()
        self.patch = patch
        self.places = nn.Parameter(torch.randn(1, grid * grid, wide))

    def forward(self, image, tokens):
        rows, columns = image.shape[1] // self.patch, image.shape[2] // self.patch
        side, wide = int(self.places.shape[1] ** 0.5), self.places.shape[2]
        grid = self.places.reshape(1, side, side, wide).permute(0, 3, 1, 2)
        return MADE


def get_inputs():
    return [torch.randint(0, 256, (BATCH, HEIGHT, WIDTH), dtype=torch.uint8), torch.randn(BATCH, HEIGHT // PATCH * (WIDTH // PATCH), WIDE)]


def get_init_inputs():
    return [PATCH, GRID, WIDE]
"""


@pytest.mark.parametrize("mode", ["bicubic", "bilinear"])
@pytest.mark.parametrize("made", ["GRID", "tokens + GRID.flatten(2).transpose(1, 2)"])
def test_learnt_places_follow_the_patches_of_an_image(made: str, mode: str, tmp_path: Path) -> None:
    """Places that are resized to as many as an image has patches are a kernel, by themselves and added to what else is made of these."""
    resized = f"F.interpolate(grid, size=(rows, columns), mode='{mode}')"
    text = PLACES.replace("MADE", made.replace("GRID", resized))
    problem, graph = traced_at_all_sizes(text)
    schedule = generated(graph, {})
    assert all(region.is_generated for region in schedule.regions)
    source = emit(problem, graph, schedule).source
    sizes = {"HEIGHT = 48": "HEIGHT = 15", "WIDTH = 64": "WIDTH = 35", "PATCH = 16": "PATCH = 5", "GRID = 6": "GRID = 5"}
    for old, new in sizes.items():
        text = text.replace(old, new)
    run(tmp_path, [source], text)
