"""Cross entropy of images against texts and of texts against images, by the cosines of their embeddings.

Occurs in CLIP. Compute-bound in the product; both softmaxes read the same logits along different dimensions.
"""

import torch
import torch.nn.functional as F

BATCH = 4096
WIDTH = 768
SMALL_SIZES = [{"BATCH": 11, "WIDTH": 37}, {"BATCH": 16, "WIDTH": 32}]


def contrastive_loss(images, texts, scale):
    images, texts = F.normalize(images, dim=-1), F.normalize(texts, dim=-1)
    logits = (images @ texts.t()).float() * scale
    targets = torch.arange(logits.shape[0], device=logits.device)
    return (F.cross_entropy(logits, targets) + F.cross_entropy(logits.t(), targets)) / 2


def example_inputs():
    return torch.randn(BATCH, WIDTH, dtype=torch.float16), torch.randn(BATCH, WIDTH, dtype=torch.float16), torch.rand(1) * 20 + 10
