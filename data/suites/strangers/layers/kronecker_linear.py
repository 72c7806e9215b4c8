"""A linear layer whose weight is a sum of Kronecker products, used without ever being built (LoKr, KronA)."""

import torch
import torch.nn as nn

TOKENS = 4096
A_OUT = 64
A_IN = 64
B_OUT = 64
B_IN = 64
TERMS = 4
SMALL_SIZES = [
    {"TOKENS": 3, "A_OUT": 2, "A_IN": 3, "B_OUT": 4, "B_IN": 5, "TERMS": 2},
    {"TOKENS": 8, "A_OUT": 16, "A_IN": 8, "B_OUT": 16, "B_IN": 8, "TERMS": 2},
]


class Model(nn.Module):
    def __init__(self, ao, ai, bo, bi, terms):
        super().__init__()
        self.a = nn.Parameter(torch.randn(terms, ao, ai, dtype=torch.float16) * ai**-0.5)
        self.b = nn.Parameter(torch.randn(terms, bo, bi, dtype=torch.float16) * bi**-0.5)
        self.gain = nn.Parameter(torch.ones(terms, dtype=torch.float16))

    def forward(self, x):
        n = x.shape[0]
        X = x.view(n, self.a.shape[2], self.b.shape[2])
        out = 0
        for term in range(self.a.shape[0]):
            out = out + self.gain[term] * (self.a[term] @ X @ self.b[term].mT)
        return out.reshape(n, -1)


def get_inputs():
    return [torch.randn(TOKENS, A_IN * B_IN, dtype=torch.float16)]


def get_init_inputs():
    return [A_OUT, A_IN, B_OUT, B_IN, TERMS]
