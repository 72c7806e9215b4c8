"""What was put into a runner and what came out, call by call: shared by the trusted processes alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from tools.evaluation.wire.calls import CallSpec
from tools.evaluation.wire.memory import Block, Memory
from tools.records import ABI

if TYPE_CHECKING:
    import torch


class TensorStore(Protocol):
    """What went into a plan's calls and what came out, as trusted processes see it."""

    def parameter_tensors(self) -> list[torch.Tensor]:
        """View the parameters."""

    def input_tensors(self, call: int) -> list[torch.Tensor]:
        """View the inputs of a call."""

    def output_tensors(self, call: int, run: int = 0) -> list[torch.Tensor]:
        """View what a call's run gave."""

    def forget(self, call: int) -> None:
        """Give back what is worth giving back of a call that has been judged."""

    def close(self) -> None:
        """Look at it no more."""


class HostStore:
    """Parameters and the inputs of every call in one memory, the outputs in another."""

    def __init__(
        self,
        abi: ABI,
        calls: tuple[CallSpec, ...],
        inputs_fd: int | None = None,
        outputs_fd: int | None = None,
        take: Callable[[int], Memory] = Memory,
    ) -> None:
        """Lay it out; map its memory, or `take` it: newly made, or from a pool."""
        self.abi = abi
        self.parameters = Block(abi.parameters)
        self._inputs = Block(abi.inputs)
        self._outputs = Block(abi.outputs)
        starts, slots = [], 0
        for call in calls:
            starts.append(slots)
            slots += call.slots
        self._first_slots = tuple(starts)
        inputs_size, outputs_size = self.parameters.end + len(calls) * self._inputs.nbytes, slots * self._outputs.nbytes
        self.inputs_memory = take(inputs_size) if inputs_fd is None else Memory.attach(inputs_fd)
        self.outputs_memory = take(outputs_size) if outputs_fd is None else Memory.attach(outputs_fd)

    def parameter_tensors(self) -> list[torch.Tensor]:
        """View the parameters."""
        return self.parameters.tensors(self.inputs_memory)

    def input_tensors(self, call: int) -> list[torch.Tensor]:
        """View the inputs of a call."""
        return self.inputs(call).tensors(self.inputs_memory)

    def output_tensors(self, call: int, run: int = 0) -> list[torch.Tensor]:
        """View what a call's run gave."""
        return self.outputs(call, run).tensors(self.outputs_memory)

    def forget(self, call: int) -> None:
        """Keep everything: the memory is not this process's."""

    def inputs(self, call: int) -> Block:
        """Where the inputs of a call lie in `inputs_memory`."""
        return self._inputs.at(self.parameters.end + call * self._inputs.nbytes)

    def outputs(self, call: int, run: int = 0) -> Block:
        """Where the outputs of a call's run lie in `outputs_memory`."""
        return self._outputs.at((self._first_slots[call] + run) * self._outputs.nbytes)

    def close(self) -> None:
        """Give the memory back to the system."""
        self.give_back(Memory.close)

    def give_back(self, put: Callable[[Memory], None]) -> None:
        """Give both memories to `put`, such as the pool that they are from."""
        put(self.inputs_memory)
        put(self.outputs_memory)
