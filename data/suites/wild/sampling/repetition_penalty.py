"""Makes words that a row has already said less likely, then subtracts a bias of each word.

Occurs before sampling. Memory-bound: logits are read and written once, a few are changed by gather and scatter.
"""

import torch

ROWS = 256
WORDS = 151936
SAID = 2048
SMALL_SIZES = [{"ROWS": 3, "WORDS": 257, "SAID": 13}, {"ROWS": 4, "WORDS": 128, "SAID": 8}]


def repetition_penalty(logits, said, penalty, bias):
    old = logits.gather(1, said)
    new = torch.where(old < 0, old * penalty[:, None], old / penalty[:, None])
    return logits.scatter(1, said, new) - bias


def example_inputs():
    return (
        torch.randn(ROWS, WORDS, dtype=torch.float16) * 3.0,
        torch.randint(0, WORDS, (ROWS, SAID)),
        (1.0 + 0.5 * torch.rand(ROWS)).half(),
        torch.rand(WORDS).half(),
    )
