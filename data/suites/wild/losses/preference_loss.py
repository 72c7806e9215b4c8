"""Preference loss of chosen and rejected answers: log probabilities of their words summed by answer, against those of a reference model.

Occurs in direct preference optimisation. Memory-bound by the logits.
"""

import torch
import torch.nn.functional as F

PAIRS = 4
TOKENS = 512
WORDS = 32000
SMALL_SIZES = [{"PAIRS": 2, "TOKENS": 5, "WORDS": 67}, {"PAIRS": 1, "TOKENS": 8, "WORDS": 64}]


def preference_loss(logits, words, counts, reference):
    every = torch.log_softmax(logits.float(), dim=-1).gather(2, words[..., None]).squeeze(2)
    total = (every * counts).sum(dim=-1)
    pairs = total.shape[0] // 2
    margin = (total[:pairs] - total[pairs:]) - (reference[:pairs] - reference[pairs:])
    return -F.logsigmoid(0.1 * margin).mean(), margin


def example_inputs():
    return (
        torch.randn(2 * PAIRS, TOKENS, WORDS, dtype=torch.bfloat16),
        torch.randint(0, WORDS, (2 * PAIRS, TOKENS)),
        (torch.rand(2 * PAIRS, TOKENS) < 0.8).float(),
        torch.randn(2 * PAIRS) * 5.0,
    )
