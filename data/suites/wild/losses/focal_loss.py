"""Binary cross entropy that counts easy examples less, weighed by class, over all anchors of a detector.

Occurs in RetinaNet and its successors. Memory-bound: one read, a sum.
"""

import torch
import torch.nn.functional as F

ANCHORS = 400000
CLASSES = 80
SMALL_SIZES = [{"ANCHORS": 13, "CLASSES": 19}, {"ANCHORS": 32, "CLASSES": 16}]


def focal_loss(logits, targets):
    probabilities = torch.sigmoid(logits)
    loss = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")
    right = probabilities * targets + (1 - probabilities) * (1 - targets)
    weight = 0.25 * targets + 0.75 * (1 - targets)
    return (weight * (1 - right).square() * loss).sum() / targets.sum().clamp(min=1.0)


def example_inputs():
    return torch.randn(ANCHORS, CLASSES) * 2.0, (torch.rand(ANCHORS, CLASSES) < 0.1).float()
