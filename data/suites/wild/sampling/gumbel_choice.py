"""Draws a word of each row by adding Gumbel noise, made of given uniform numbers, to the logits.

Occurs in samplers that avoid a sort and a running sum. Memory-bound: one pass over two large tensors and an argmax.
"""

import torch

ROWS = 256
WORDS = 128256
SMALL_SIZES = [{"ROWS": 3, "WORDS": 1021}, {"ROWS": 4, "WORDS": 256}]


def gumbel_choice(logits, uniform, temperature):
    noisy = logits.float() / temperature[:, None] - torch.log(-torch.log(uniform))
    words = noisy.argmax(dim=-1)
    return words, torch.log_softmax(logits.float(), dim=-1).gather(1, words[:, None]).squeeze(1)


def example_inputs():
    return (
        torch.randn(ROWS, WORDS, dtype=torch.bfloat16) * 3.0,
        torch.rand(ROWS, WORDS) * 0.98 + 0.01,
        0.5 + torch.rand(ROWS),
    )
