"""Divergence of a student's words from a teacher's at a temperature, averaged over tokens.

Occurs in distillation of language models. Memory-bound: both logits are read once if the sums are kept online.
"""

import torch

TOKENS = 2048
WORDS = 32000
SMALL_SIZES = [{"TOKENS": 5, "WORDS": 257}, {"TOKENS": 8, "WORDS": 128}]


def distillation_divergence(student, teacher):
    temperature = 2.0
    ours = torch.log_softmax(student.float() / temperature, dim=-1)
    theirs = torch.log_softmax(teacher.float() / temperature, dim=-1)
    return (theirs.exp() * (theirs - ours)).sum(dim=-1).mean() * temperature**2


def example_inputs():
    return torch.randn(TOKENS, WORDS, dtype=torch.bfloat16) * 2.0, torch.randn(TOKENS, WORDS, dtype=torch.bfloat16) * 2.0
