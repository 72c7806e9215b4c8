"""One less the overlap of predicted and true regions of each class, plus the mean cross entropy of the pixels.

Occurs in segmentation of medical images (nnU-Net). Memory-bound: sums over pixels by class, and a softmax over classes.
"""

import torch
import torch.nn.functional as F

IMAGES = 4
CLASSES = 8
HEIGHT = 512
WIDTH = 512
SMALL_SIZES = [{"IMAGES": 2, "HEIGHT": 5, "WIDTH": 7}, {"IMAGES": 1, "HEIGHT": 8, "WIDTH": 8}]


def overlap_loss(logits, targets):
    probabilities = torch.softmax(logits, dim=1)
    truth = F.one_hot(targets, CLASSES).permute(0, 3, 1, 2).to(logits.dtype)
    shared = (probabilities * truth).sum(dim=(2, 3))
    overlap = (2 * shared + 1.0) / (probabilities.sum(dim=(2, 3)) + truth.sum(dim=(2, 3)) + 1.0)
    return 1.0 - overlap.mean() + F.cross_entropy(logits, targets)


def example_inputs():
    return torch.randn(IMAGES, CLASSES, HEIGHT, WIDTH) * 2.0, torch.randint(0, CLASSES, (IMAGES, HEIGHT, WIDTH))
