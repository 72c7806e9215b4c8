"""Expected monotonic alignment of a streaming decoder.

Stay and move probabilities in logs, running log sums, a frontier by running maximum.
"""

import torch

BATCH = 64
TARGET = 32
SOURCE = 512
SMALL_SIZES = [{"BATCH": 2, "TARGET": 3, "SOURCE": 9}, {"BATCH": 2, "TARGET": 4, "SOURCE": 32}]


class Model(torch.nn.Module):
    def forward(self, energy):
        log_p = torch.nn.functional.logsigmoid(energy)
        log_stay = torch.nn.functional.logsigmoid(-energy)
        running = torch.cumsum(log_stay, dim=-1)
        exclusive = torch.nn.functional.pad(running[..., :-1], (1, 0))
        before = torch.full_like(energy[:, 0], -30.0)
        before[:, 0] = 0.0
        rows = []
        for i in range(energy.shape[1]):
            inner = torch.logcumsumexp(before - exclusive[:, i], dim=-1)
            before = (log_p[:, i] + exclusive[:, i] + inner).clamp(min=-30.0)
            rows.append(before)
        alignment = torch.stack(rows, 1).exp()
        centre = (alignment * torch.arange(energy.shape[-1], device=energy.device)).sum(-1) / (alignment.sum(-1) + 1e-6)
        frontier = torch.cummax(centre, dim=1).values
        return alignment, frontier


def get_inputs():
    return [torch.randn(BATCH, TARGET, SOURCE) - 2.0]


def get_init_inputs():
    return []
