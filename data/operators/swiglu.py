"""SwiGLU: the SiLU of one half of the columns gates the other half.

Occurs in the feed-forward block of LLaMA-like transformers, after the joint gate-and-up product. Memory-bound: reads twice
what it writes.
"""

import torch
import torch.nn.functional as F

TOKENS = 4096
INTERMEDIATE = 8192


def swiglu(gate_and_up):
    gate, up = gate_and_up.chunk(2, dim=-1)
    return F.silu(gate) * up


def example_inputs():
    return (torch.randn(TOKENS, 2 * INTERMEDIATE),)
