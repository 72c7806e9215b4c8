"""Best tag path of a linear-chain CRF: a forward loop with back pointers and a backward walk."""

import torch
import torch.nn as nn

BATCH = 512
LENGTH = 64
TAGS = 25
SMALL_SIZES = [{"BATCH": 2, "LENGTH": 5, "TAGS": 3}, {"BATCH": 4, "LENGTH": 8, "TAGS": 8}]


class Model(nn.Module):
    def __init__(self, tags):
        super().__init__()
        self.transitions = nn.Parameter(torch.randn(tags, tags))
        self.start = nn.Parameter(torch.randn(tags))

    def forward(self, emissions):
        score = self.start + emissions[:, 0]
        back = []
        for t in range(1, emissions.size(1)):
            candidates = score.unsqueeze(2) + self.transitions
            score, pointer = candidates.max(dim=1)
            score = score + emissions[:, t]
            back.append(pointer)
        best, tag = score.max(dim=1)
        path = [tag]
        for pointer in reversed(back):
            tag = pointer.gather(1, tag.unsqueeze(1)).squeeze(1)
            path.append(tag)
        return best, torch.stack(path[::-1], dim=1)


def get_inputs():
    return [torch.randn(BATCH, LENGTH, TAGS)]


def get_init_inputs():
    return [TAGS]
