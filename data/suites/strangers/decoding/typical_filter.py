"""Locally typical sampling: tokens whose surprise is nearest to the entropy are kept, up to a mass."""

import torch

BATCH = 64
VOCABULARY = 32000
SMALL_SIZES = [{"BATCH": 3, "VOCABULARY": 37}, {"BATCH": 2, "VOCABULARY": 64}]


class Model(torch.nn.Module):
    def __init__(self, mass: float, temperature: float):
        super().__init__()
        self.mass = mass
        self.temperature = temperature

    def forward(self, logits):
        scores = logits.float() / self.temperature
        normalised = torch.nn.functional.log_softmax(scores, dim=-1)
        p = torch.exp(normalised)
        entropy = -(normalised * p).nansum(-1, keepdim=True)
        shifted = torch.abs(-normalised - entropy)
        _, order = torch.sort(shifted, descending=False)
        sorted_logits = scores.gather(-1, order)
        cumulative = sorted_logits.softmax(dim=-1).cumsum(dim=-1)
        last = (cumulative < self.mass).sum(dim=1)
        last.clamp_(max=scores.shape[1] - 1)
        drop_sorted = torch.arange(scores.shape[1], device=scores.device) > last[:, None]
        drop = drop_sorted.scatter(1, order, drop_sorted)
        return scores.masked_fill(drop, -1e4).softmax(-1)


def get_inputs():
    return [torch.randn(BATCH, VOCABULARY, dtype=torch.float16) * 2]


def get_init_inputs():
    return [0.9, 0.8]
