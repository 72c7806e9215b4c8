"""Each token is multiplied with the weights of its own expert."""

import torch

TOKENS = 2048
EXPERTS = 16
WIDTH = 256
HIDDEN = 512
SMALL_SIZES = [{"TOKENS": 50, "EXPERTS": 3, "WIDTH": 40, "HIDDEN": 33}, {"TOKENS": 1, "EXPERTS": 2, "WIDTH": 16, "HIDDEN": 16}]


def experts(x, expert, w):
    return torch.bmm(x.unsqueeze(1), w[expert]).squeeze(1)


def example_inputs():
    return torch.randn(TOKENS, WIDTH), torch.randint(0, EXPERTS, (TOKENS,)), torch.randn(EXPERTS, WIDTH, HIDDEN)
