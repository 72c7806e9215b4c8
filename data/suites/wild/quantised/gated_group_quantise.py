"""SwiGLU of a packed projection, rounded to float8 with a scale for each group of 128 channels.

Occurs between the two products of a quantised feed-forward block. Memory-bound: one pass over the projection.
"""

import torch

TOKENS = 8192
HIDDEN = 4096
GROUP = 128
SMALL_SIZES = [{"TOKENS": 5, "HIDDEN": 384}, {"TOKENS": 8, "HIDDEN": 256}]
MORE_SIZES = [{"TOKENS": 16}]


def gated_group_quantise(projection):
    gate, up = projection.float().chunk(2, dim=-1)
    value = (torch.sigmoid(gate) * gate * up).reshape(projection.shape[0], -1, GROUP)
    scale = value.abs().amax(dim=-1, keepdim=True).clamp(min=1e-4) / 448.0
    rounded = (value / scale).clamp(-448.0, 448.0).to(torch.float8_e4m3fn)
    return rounded.reshape(projection.shape[0], -1), scale.squeeze(-1)


def example_inputs():
    return (torch.randn(TOKENS, 2 * HIDDEN, dtype=torch.bfloat16),)
