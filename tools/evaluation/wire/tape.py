"""What was put into a runner and what came out, call by call: shared by the trusted processes alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

from tools.evaluation.processes.shared_memory_pool import Shelf
from tools.evaluation.wire.memory import Block, Memory
from tools.records import ABI, Record, SeededCall, Seeds

if TYPE_CHECKING:
    import torch


class CallSpec(Record):
    """One call to be made."""

    seed: int
    """Secret: drawn after the candidate's source was frozen."""
    distribution: str
    group: str
    """Calls of one group share their limits."""
    slots: int = 1
    """How many times it is run, each time with another poison."""
    follows: bool = False
    """Its inputs are those of the call before but for a few neighbouring elements, which `seed` chooses."""
    shifted: bool = False
    """Its inputs begin one element later in memory than PyTorch's allocator would have them."""

    @property
    def published(self) -> SeededCall:
        """Say where its inputs came from."""
        how = self.distribution + (", a few elements changed" if self.follows else "") + (", misaligned" if self.shifted else "")
        return SeededCall(seed=self.seed, distribution=how, runs=self.slots)


class Sitting(Record):
    """One runner's calls on one problem, in order."""

    problem: str
    """JSON of the problem: sizes, ABI, policy, reference."""
    shake: int | None
    """Seed by which parameters that are all equal (zero biases, unit scales) are moved; None leaves them."""
    calls: tuple[CallSpec, ...]

    def published(self, purpose: Literal["check", "time"], size: str, patches: int | None = None) -> Seeds:
        """Write the seeds down, the evaluation being over."""
        calls = tuple(call.published for call in self.calls)
        return Seeds(purpose=purpose, size=size, shake=self.shake, calls=calls, patches=patches)


class CallTensors(Protocol):
    """What went into a sitting's calls and what came out, as trusted processes see it."""

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


class Tape:
    """Parameters and the inputs of every call in one memory, the outputs in another."""

    def __init__(
        self, abi: ABI, calls: tuple[CallSpec, ...], inputs_fd: int | None = None, outputs_fd: int | None = None, shelf: Shelf | None = None
    ) -> None:
        """Lay it out; map its memory, or take it from a `shelf`, or make it."""
        self.abi = abi
        self.parameters = Block(abi.parameters)
        self._inputs = Block(abi.inputs)
        self._outputs = Block(abi.outputs)
        starts, slots = [], 0
        for call in calls:
            starts.append(slots)
            slots += call.slots
        self._first_slots = tuple(starts)
        self._shelf = shelf
        self.inputs_memory = self._memory(self.parameters.end + len(calls) * self._inputs.nbytes, inputs_fd)
        self.outputs_memory = self._memory(slots * self._outputs.nbytes, outputs_fd)

    def _memory(self, size: int, fd: int | None) -> Memory:
        return self._shelf.take(size) if self._shelf is not None else Memory(size, fd)

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

    def close(self, *, unused: bool = False) -> None:
        """Give the memory back: to the shelf it is from, where it is known to be `unused`, else to the system."""
        for memory in (self.inputs_memory, self.outputs_memory):
            if self._shelf is not None and unused:
                self._shelf.put(memory)
            else:
                memory.close()
