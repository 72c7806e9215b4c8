"""How sure a classifier is against how right: counts, mean confidence and accuracy by bin, and the expected error."""

import torch

SAMPLES = 65536
CLASSES = 1000
BINS = 15
SMALL_SIZES = [{"SAMPLES": 19, "CLASSES": 5, "BINS": 4}, {"SAMPLES": 64, "CLASSES": 16, "BINS": 4}]


class Model(torch.nn.Module):
    def __init__(self, bins):
        super().__init__()
        self.bins = bins
        self.register_buffer("edges", torch.linspace(0, 1, bins + 1)[1:-1])

    def forward(self, logits, target):
        confidence, guess = logits.float().softmax(-1).max(-1)
        right = (guess == target).float()
        place = torch.bucketize(confidence, self.edges)
        zeros = torch.zeros(self.bins, device=logits.device)
        count = zeros.index_add(0, place, torch.ones_like(confidence))
        sure = zeros.index_add(0, place, confidence) / count.clamp(min=1)
        hit = zeros.index_add(0, place, right) / count.clamp(min=1)
        error = ((sure - hit).abs() * count / count.sum()).sum()
        return count, sure, hit, error


def get_inputs():
    return [torch.randn(SAMPLES, CLASSES, dtype=torch.float16) * 4, torch.randint(0, CLASSES, (SAMPLES,))]


def get_init_inputs():
    return [BINS]
