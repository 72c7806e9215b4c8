"""Mean cross entropy of a linear layer's outputs, whose logits are used for nothing else.

Occurs at the end of every language model's training step (Liger, Cut Cross Entropy). Compute-bound; the logits need not be written.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, hidden, words):
        super().__init__()
        self.head = nn.Linear(hidden, words, bias=False, dtype=torch.bfloat16)

    def forward(self, x, targets):
        return F.cross_entropy(self.head(x).float(), targets)


tokens = 4096
hidden = 2048
words = 32000
SMALL_SIZES = [{"tokens": 7, "hidden": 37, "words": 131}, {"tokens": 16, "hidden": 32, "words": 64}]
MORE_SIZES = [{"tokens": 8192, "words": 128256}]


def get_inputs():
    return [torch.randn(tokens, hidden, dtype=torch.bfloat16), torch.randint(0, words, (tokens,))]


def get_init_inputs():
    return [hidden, words]
