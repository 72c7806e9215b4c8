"""A factorisation machine over fields that share one table by offsets.

First-order weights and half of (square of sum less sum of squares).
"""

import torch
import torch.nn as nn

BATCH = 16384
FIELDS = 39
PER_FIELD = 5000
DIM = 32
SMALL_SIZES = [{"BATCH": 5, "FIELDS": 3, "PER_FIELD": 6, "DIM": 4}, {"BATCH": 16, "FIELDS": 4, "PER_FIELD": 8, "DIM": 16}]


class Model(nn.Module):
    def __init__(self, fields, per_field, dim):
        super().__init__()
        self.table = nn.Embedding(fields * per_field, dim, dtype=torch.bfloat16)
        self.linear = nn.Embedding(fields * per_field, 1, dtype=torch.bfloat16)
        self.register_buffer("offsets", torch.arange(0, fields * per_field, per_field))
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, ids, weights):
        ids = ids + self.offsets
        e = self.table(ids) * weights.unsqueeze(-1)
        square_of_sum = e.float().sum(1) ** 2
        sum_of_square = (e.float() ** 2).sum(1)
        second = 0.5 * (square_of_sum - sum_of_square).sum(1)
        first = (self.linear(ids).squeeze(-1) * weights).float().sum(1)
        return torch.sigmoid(second / e.shape[1] + first + self.bias)


def get_inputs():
    return [torch.randint(0, PER_FIELD, (BATCH, FIELDS)), torch.rand(BATCH, FIELDS, dtype=torch.bfloat16)]


def get_init_inputs():
    return [FIELDS, PER_FIELD, DIM]
