"""What a loop costs that is left to the library: its launches, and what its steps move."""

from __future__ import annotations

from tests.tools.codegen.harness import traced_text
from tools.codegen.ir.loop import Loop
from tools.cost.library import left_us
from tools.hardware import load_sheet

SHEET = load_sheet("h100")
ROUNDS = """import torch

SIDE = 24
ROUNDS = 20
SMALL_SIZES = [{"SIDE": 5, "ROUNDS": 7}, {"SIDE": 9, "ROUNDS": 13}]


class Model(torch.nn.Module):
    def __init__(self, rounds):
        super().__init__()
        self.rounds = rounds

    def forward(self, x):
        u = torch.zeros_like(x[0])
        for _ in range(self.rounds):
            u = -torch.logsumexp(x + u[:, None], 0)
        return u


def get_inputs():
    return [torch.randn(SIDE, SIDE)]


def get_init_inputs():
    return [ROUNDS]
"""


def of_side(side: int) -> float:
    """Time of the loop over a square of that side, microseconds."""
    graph = traced_text(ROUNDS.replace("SIDE = 24", f"SIDE = {side}"))[1]
    (loop,) = (node.name for node in graph.nodes if isinstance(node, Loop))
    return left_us(graph, (loop,), SHEET)


def test_steps_that_move_much_take_longer_than_their_launches() -> None:
    """What 20 steps add to large squares goes past many times, whatever a launch takes."""
    moved_us = 20 * 6 * 4096 * 4096 * 4 / SHEET.memory_gbps / 1e3
    assert of_side(4096) > moved_us > of_side(24)


def test_a_logarithm_of_sums_is_nine_kernels() -> None:
    """PyTorch makes it of others, each of which is a launch: small steps take as long as these."""
    assert of_side(24) == 20 * (9 + 2) * SHEET.launch_us
