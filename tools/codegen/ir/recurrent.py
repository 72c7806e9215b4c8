"""Recurrent layers as ATen has them, LSTM, GRU and RNN: what a step of a layer does, and which tensors it is given."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tools.codegen.ir.graph import Ref, TensorMeta
from tools.codegen.ir.sizes import Sizes


class Cell(StrEnum):
    """What a step makes of its sums, by ATen's name."""

    LSTM = "lstm"
    GRU = "gru"
    TANH = "rnn_tanh"
    RELU = "rnn_relu"

    @property
    def gates(self) -> int:
        """Rows of weights for each unit."""
        return {Cell.LSTM: 4, Cell.GRU: 3}.get(self, 1)


@dataclass(frozen=True)
class LayerWeights:
    """What one direction of one layer has."""

    inputs: Ref
    """Gates times units, by the layer's inputs."""
    hidden: Ref
    """Gates times units, by units."""
    input_bias: Ref | None
    hidden_bias: Ref | None


@dataclass(frozen=True)
class Recurrent:
    """All layers of one call."""

    cell: Cell
    given: Ref
    meta: TensorMeta
    """Of what is given: steps, sequences and inputs, the sequences first where `batch_first` says so."""
    states: tuple[Ref, ...]
    """The first hidden states, of an LSTM those of its cells as well; empty where they are zeros."""
    layers: tuple[tuple[LayerWeights, ...], ...]
    """Of each layer what its directions have."""
    batch_first: bool
    hidden: Sizes
    """Units of a layer and direction."""
    results: dict[int, Ref]
    """What is read of sequence, last hidden states and last cells, by its place."""

    @property
    def directions(self) -> int:
        """Directions of each layer: one or two."""
        return len(self.layers[0])

    @property
    def every(self) -> tuple[LayerWeights, ...]:
        """The weights of all layers and directions, in the order of the states."""
        return tuple(one for layer in self.layers for one in layer)

    @property
    def steps(self) -> Sizes:
        """Steps of a sequence."""
        return self.meta.shape[1 if self.batch_first else 0]

    @property
    def batch(self) -> Sizes:
        """Sequences."""
        return self.meta.shape[0 if self.batch_first else 1]
