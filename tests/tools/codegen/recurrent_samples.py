"""References with recurrent layers: cells, layouts, directions, states given or not."""

from __future__ import annotations

TEXT = """
import torch
from torch import nn

STEPS, BATCH, INPUTS, UNITS = 6, 3, 12, 20

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.{layers}

    def forward(self, {names}):
        {forward}

def get_inputs():
    return [torch.rand({shape}, INPUTS), {first}]

def get_init_inputs():
    return []
"""
PLAIN, STATES = "return self.net(x)[0]", "torch.rand(2, BATCH, UNITS), torch.rand(2, BATCH, UNITS)"


def layers_text(layers: str, forward: str = PLAIN, *, first: str = "", names: str = "x", batch_first: bool = True) -> str:
    """Write a reference with recurrent layers."""
    shape = "BATCH, STEPS" if batch_first else "STEPS, BATCH"
    layers = layers.replace("(", "(INPUTS, UNITS, ").replace(")", f"{', batch_first=True' if batch_first else ''})")
    return TEXT.format(layers=layers, forward=forward, first=first, names=names, shape=shape)


LSTM = layers_text("LSTM(2)")
BOTH = layers_text("LSTM(2, bidirectional=True)", "out, (h, c) = self.net(x)\n        return out, h, c", batch_first=False)
SAMPLES = {
    "lstm": LSTM,
    "lstm_states": layers_text("LSTM(2)", "out, (h, c) = self.net(x, (a, b))\n        return h, c", first=STATES, names="x, a, b"),
    "gru": layers_text("GRU(3)", "out, h = self.net(x)\n        return out, h", batch_first=False),
    "gru_states": layers_text("GRU(1, bias=False)", "return self.net(x, a)[1]", first="torch.rand(1, BATCH, UNITS)", names="x, a"),
    "tanh": layers_text("RNN(2)"),
    "relu": layers_text("RNN(2, nonlinearity='relu')"),
    "both": BOTH,
    "gru_both": layers_text("GRU(1, bidirectional=True)"),
    "halves": LSTM.replace("INPUTS),", "INPUTS).bfloat16(),").replace("batch_first=True", "batch_first=True, dtype=torch.bfloat16"),
}
