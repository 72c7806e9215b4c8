"""What reductions cost where lanes share them or their results are spread, and what square roots cost in registers."""

from __future__ import annotations

from tests.tools.codegen.harness import traced_text
from tests.tools.codegen.samples import function
from tools.codegen import initial_schedule
from tools.codegen.ir.launch import LaunchWork
from tools.codegen.schedule.plan import TILE, plan_region
from tools.codegen.templates.tile.instructions import Instructions
from tools.codegen.templates.tile.laid import Laid
from tools.codegen.templates.tile.launches import tile_launches
from tools.codegen.templates.tile.placement import tile_layout_of
from tools.codegen.templates.tile.tiling import Tiling
from tools.hardware import load_sheet

PARAMETERS = {
    "algorithm": "flat", "reduction": "registers", "BLOCK_M": 1, "BLOCK_N": 1, "BLOCK_K": 64, "SPLITS": 32, "STEPS": 1, "COPIES": 1,
    "num_warps": 4,
}  # fmt: skip


WEIGHED = """import torch

TEAMS, MEMBERS, TOKENS = 16, 8, 512
SMALL_SIZES = [{"TEAMS": 3, "MEMBERS": 2, "TOKENS": 7}]


def weighed(x, w):
    return (WEIGHT[:, :, None] * x).sum((1, 2))


def example_inputs():
    return torch.randn(TEAMS, MEMBERS, TOKENS), torch.randn(TEAMS, MEMBERS)
"""


def launched(source: str, columns: int = 1) -> LaunchWork:
    """Count the launch of all of a function as one tile kernel, behind a copy of what it writes to."""
    _, graph = traced_text(source)
    members = [name for region in initial_schedule(graph).regions for name in region.nodes]
    *_, work = tile_launches(plan_region(graph, members, TILE).kernel, PARAMETERS | {"BLOCK_N": columns}, load_sheet("h200"))
    return work


def test_a_small_reduction_that_meets_a_tile_goes_through_shared_memory() -> None:
    """The spread of eight weights over eight rows costs more than weights that nothing was summed for."""
    summed = launched(WEIGHED.replace("WEIGHT", "(w - w.sum(1, keepdim=True))"))
    plain = launched(WEIGHED.replace("WEIGHT", "(w - 1.0)"))
    assert summed.exchange_cycles > plain.exchange_cycles + 2000


def test_a_reduction_of_the_tile_itself_is_spread_for_nothing() -> None:
    """A row's own sum lies as the row does."""
    inputs = "torch.randn(16, 4096), torch.randn(16, 4096)"
    own = launched(function("(x / x.sum(1, keepdim=True) * y).sum(1)", inputs, "x, y"))
    plain = launched(function("(x / 2.0 * y).sum(1)", inputs, "x, y"))
    assert own.exchange_cycles < plain.exchange_cycles + 100


def test_what_is_loaded_stays_in_registers_over_square_roots() -> None:
    """Distances of points hold all coordinates of a tile at once; squares of distances do not."""
    inputs = "torch.randn(4, 512, 3), torch.randn(4, 512, 3)"
    squares = "(x[:, :, None] - y[:, None]).square().sum(-1)"
    rooted = launched(function(f"({squares} + 1e-3).sqrt().sum(-1)", inputs, "x, y"), columns=8)
    plain = launched(function(f"({squares} + 1e-3).sum(-1)", inputs, "x, y"), columns=8)
    assert rooted.registers > plain.registers + 15


def test_values_written_to_pages_are_priced_by_their_own_dimensions() -> None:
    """Two positions say where a token's values go: the cache has a dimension more than what is written to it."""
    pages = "torch.randn(32, 16, 8, 128), torch.randn(64, 8, 128), torch.randint(0, 32, (64,)), torch.randint(0, 16, (64,))"
    assert launched(function("x.index_put((i, j), y * 2)", pages, "x, y, i, j"), columns=64).lane_work > 0


def test_results_that_lanes_share_are_handed_around() -> None:
    """Eight lanes share a row of 32, of which a thread has four: three words for each. A long row is one result over all lanes."""
    assert shuffled("torch.randn(4096, 32)", columns=64) == 4 * 3
    assert shuffled("torch.randn(64, 2048)", columns=1) == 5


def shuffled(inputs: str, columns: int) -> float:
    """Count the words that a thread of four warps hands to other lanes for the sums of rows."""
    _, graph = traced_text(function("x.sum(1)", inputs))
    kernel = plan_region(graph, [node.name for node in graph.nodes], TILE).kernel
    return Instructions(Laid(Tiling(tile_layout_of(kernel), PARAMETERS | {"BLOCK_N": columns}))).shuffles
