"""Run-length code of rows of labels: values, starts and lengths of the runs at the front, and how many there are."""

import torch

ROWS = 1024
COLUMNS = 2048
SMALL_SIZES = [{"ROWS": 3, "COLUMNS": 13}, {"ROWS": 4, "COLUMNS": 32}]


class Model(torch.nn.Module):
    def forward(self, labels):
        change = torch.ones_like(labels, dtype=torch.bool)
        change[:, 1:] = labels[:, 1:] != labels[:, :-1]
        run = torch.cumsum(change.to(torch.int32), dim=1).long() - 1
        runs = run[:, -1] + 1
        lengths = torch.zeros_like(labels).scatter_add_(1, run, torch.ones_like(labels))
        values = torch.zeros_like(labels).scatter_(1, run, labels)
        starts = torch.cumsum(lengths, 1) - lengths
        starts = torch.where(lengths > 0, starts, -1)
        return values, starts, lengths, runs


def get_inputs():
    return [torch.randint(0, 3, (ROWS, COLUMNS), dtype=torch.int32).repeat_interleave(1, dim=1)]


def get_init_inputs():
    return []
