"""Blocks of torch.autocast within a reference's forward."""

from __future__ import annotations

import pytest

from tests.tools.codegen.harness import problem_of
from tools.codegen import OperatorGraph, trace

ROTARY = """
import torch


class Model(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.register_buffer("rates", torch.arange(1, features // 2 + 1).float(), persistent=False)

    def forward(self, x, places):
{block}
            turns = places[:, None].float() * self.rates[None, :]
            turns = torch.cat((turns, turns), dim=-1)
            cos, sin = turns.cos(), turns.sin()
        return x * cos.to(x.dtype) + sin.to(x.dtype)


def get_inputs():
    return [torch.randn(8, 16, dtype=torch.float16), torch.arange(8)]


def get_init_inputs():
    return [16]
"""


def traced(block: str) -> OperatorGraph:
    """Trace a rotary embedding whose angles are made in a block."""
    return trace(problem_of(ROTARY.format(block=f"        {block}:"), "Model"))


@pytest.mark.parametrize("device", ['"cuda"', "x.device.type"])
def test_a_block_with_autocast_off_is_its_operators(device: str) -> None:
    """What models write around their angles changes nothing where autocast is off around it, too."""
    without = traced("if True")
    graph = traced(f"with torch.autocast(device_type={device}, enabled=False)")
    assert not graph.blocked
    assert [node.target for node in graph.nodes] == [node.target for node in without.nodes]


@pytest.mark.parametrize("device", ['"cuda"', '"cpu"'])
def test_a_block_that_rounds_is_refused(device: str) -> None:
    """A block that rounds does so on one kind of device alone: the reference is kept, and what can be done is said."""
    (reason,) = traced(f"with torch.autocast({device}, dtype=torch.bfloat16)").blocked
    assert "write the casts themselves" in reason
