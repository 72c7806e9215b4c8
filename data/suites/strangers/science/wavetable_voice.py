"""A wavetable synthesiser: phases by running sums of frequency, tables read between samples, harmonics mixed under an envelope."""

import torch
import torch.nn as nn

BATCH = 16
SAMPLES = 32000
TABLES = 8
TABLE = 512
SMALL_SIZES = [{"BATCH": 2, "SAMPLES": 33, "TABLES": 2, "TABLE": 8}, {"BATCH": 1, "SAMPLES": 64, "TABLES": 4, "TABLE": 16}]


class Model(nn.Module):
    def __init__(self, tables, table, rate=16000.0):
        super().__init__()
        self.tables = nn.Parameter(torch.randn(tables, table) * 0.1)
        self.rate = rate

    def forward(self, pitch, amplitude, mixture):
        increment = pitch / self.rate
        phase = torch.cumsum(increment.double(), dim=1) % 1.0
        place = phase.float() * self.tables.shape[1]
        low = place.floor()
        part = place - low
        i = low.long() % self.tables.shape[1]
        j = (i + 1) % self.tables.shape[1]
        table = torch.tanh(self.tables)
        voices = table[:, i] * (1 - part) + table[:, j] * part
        weights = torch.softmax(mixture, dim=-1).permute(2, 0, 1)
        voiced = (pitch > 60.0).float()
        return (voices * weights).sum(0) * amplitude.clamp(0, 1) * voiced


def get_inputs():
    return [torch.rand(BATCH, SAMPLES) * 400 + 40, torch.rand(BATCH, SAMPLES), torch.randn(BATCH, SAMPLES, TABLES)]


def get_init_inputs():
    return [TABLES, TABLE]
