"""Mean cross entropy with smoothed labels over the targets that count.

Occurs in training of translation and vision models. Memory-bound: one read of the logits gives maximum, sum and mean.
"""

import torch
import torch.nn.functional as F

TOKENS = 4096
WORDS = 32000
SMALL_SIZES = [{"TOKENS": 7, "WORDS": 257}, {"TOKENS": 8, "WORDS": 128}]


def smoothed_cross_entropy(logits, targets):
    return F.cross_entropy(logits.float(), targets, ignore_index=-100, label_smoothing=0.1)


def example_inputs():
    targets = torch.randint(0, WORDS, (TOKENS,))
    ignored = torch.arange(TOKENS) % 5 == 2
    return torch.randn(TOKENS, WORDS, dtype=torch.bfloat16) * 2.0, torch.where(ignored, -100, targets)
