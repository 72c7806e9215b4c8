"""Sequences of one packed row given places, positions and mean-centred states, then padded to a rectangle with a mask (cu_seqlens)."""

import torch

TOKENS = 16384
SEQUENCES = 32
LONGEST = 1024
HIDDEN = 1024
SMALL_SIZES = [{"TOKENS": 19, "SEQUENCES": 3, "LONGEST": 9, "HIDDEN": 5}, {"TOKENS": 32, "SEQUENCES": 4, "LONGEST": 16, "HIDDEN": 16}]


class Model(torch.nn.Module):
    def __init__(self, longest):
        super().__init__()
        self.longest = longest

    def forward(self, packed, cu_seqlens):
        total = packed.shape[0]
        token = torch.arange(total, device=packed.device, dtype=cu_seqlens.dtype)
        sequence = torch.searchsorted(cu_seqlens[1:], token, right=True).clamp(max=cu_seqlens.shape[0] - 2)
        position = token - cu_seqlens[sequence]
        lengths = cu_seqlens[1:] - cu_seqlens[:-1]
        sums = torch.zeros(lengths.shape[0], packed.shape[1], device=packed.device).index_add_(0, sequence, packed.float())
        centred = packed.float() - (sums / lengths.clamp(min=1)[:, None])[sequence]
        step = torch.arange(self.longest, device=packed.device)
        mask = step[None, :] < lengths[:, None]
        source = (cu_seqlens[:-1, None] + step).clamp(max=total - 1)
        padded = centred.to(packed.dtype)[source] * mask.unsqueeze(-1)
        return padded, mask, position


def get_inputs():
    cu = torch.linspace(0, TOKENS, SEQUENCES + 1).floor().to(torch.int32)
    return [torch.randn(TOKENS, HIDDEN, dtype=torch.bfloat16), cu]


def get_init_inputs():
    return [LONGEST]
