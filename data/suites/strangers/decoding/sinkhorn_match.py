"""Soft assignment between two sets of descriptors with a dustbin, by a hundred normalisations in the log domain (SuperGlue)."""

import torch
import torch.nn as nn

B = 8
M = 512
N = 512
D = 256
ROUNDS = 30
SMALL_SIZES = [{"B": 2, "M": 7, "N": 9, "D": 5, "ROUNDS": 3}, {"B": 1, "M": 16, "N": 16, "D": 16, "ROUNDS": 4}]


class Model(nn.Module):
    def __init__(self, rounds):
        super().__init__()
        self.bin = nn.Parameter(torch.tensor(1.0))
        self.rounds = rounds

    def forward(self, one, two):
        scores = torch.einsum("bmd,bnd->bmn", one, two) / one.shape[-1] ** 0.5
        b, m, n = scores.shape
        bins0 = self.bin.expand(b, m, 1)
        bins1 = self.bin.expand(b, 1, n)
        corner = self.bin.expand(b, 1, 1)
        couplings = torch.cat([torch.cat([scores, bins0], -1), torch.cat([bins1, corner], -1)], 1)
        norm = -torch.tensor(float(m + n), device=scores.device).log()
        log_mu = torch.cat([norm.expand(m), torch.tensor([float(n)], device=scores.device).log() + norm])[None].expand(b, -1)
        log_nu = torch.cat([norm.expand(n), torch.tensor([float(m)], device=scores.device).log() + norm])[None].expand(b, -1)
        u, v = torch.zeros_like(log_mu), torch.zeros_like(log_nu)
        for _ in range(self.rounds):
            u = log_mu - torch.logsumexp(couplings + v.unsqueeze(1), dim=2)
            v = log_nu - torch.logsumexp(couplings + u.unsqueeze(2), dim=1)
        return couplings + u.unsqueeze(2) + v.unsqueeze(1) - norm


def get_inputs():
    return [torch.randn(B, M, D), torch.randn(B, N, D)]


def get_init_inputs():
    return [ROUNDS]
