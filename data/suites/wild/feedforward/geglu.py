"""The gate of a GELU, by its tanh form, times the values.

Occurs in Gemma and T5 v1.1, and in Liger's collection. Memory-bound.
"""

import torch
import torch.nn.functional as F

TOKENS = 16384
INNER = 8192
SMALL_SIZES = [{"TOKENS": 5, "INNER": 257}, {"TOKENS": 8, "INNER": 128}]
MORE_SIZES = [{"TOKENS": 16}]


def geglu(gate, up):
    return F.gelu(gate, approximate="tanh") * up


def example_inputs():
    return torch.randn(TOKENS, INNER, dtype=torch.float16), torch.randn(TOKENS, INNER, dtype=torch.float16)
