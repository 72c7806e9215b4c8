"""One step of beam search: log probabilities added to each beam's score, the best continuations over all beams.

Occurs in translation and speech recognition. Memory-bound: a log-softmax over the vocabulary, then a selection over all beams.
"""

import torch

BATCH = 32
BEAMS = 4
WORDS = 51865
SMALL_SIZES = [{"BATCH": 3, "BEAMS": 2, "WORDS": 67}, {"BATCH": 2, "BEAMS": 4, "WORDS": 64}]


def beam_step(logits, scores):
    total = torch.log_softmax(logits, dim=-1) + scores[..., None]
    best, index = total.flatten(1).topk(2 * logits.shape[1], dim=-1)
    return best, index // logits.shape[-1], index % logits.shape[-1]


def example_inputs():
    return torch.randn(BATCH, BEAMS, WORDS) * 2.0, torch.randn(BATCH, BEAMS)
