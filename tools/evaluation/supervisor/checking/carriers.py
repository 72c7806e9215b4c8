"""How a call's tensors reach a runner and come back: through the host's memory, or for large ones through the device's."""

from __future__ import annotations

import random
from contextlib import ExitStack
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tools.evaluation.supervisor.checking.device_store_client import DeviceStoreClient
from tools.evaluation.wire import patching
from tools.evaluation.wire.channel import Exchange, Patch
from tools.evaluation.wire.jobs.device_store import DeviceStoreAnswer
from tools.evaluation.wire.memory import Memory
from tools.evaluation.wire.tensor_store import HostStore
from tools.records import ITEM_BYTES

if TYPE_CHECKING:
    import numpy


NONE = -1
"""For the number of a chain's call that will be taken: none will."""


class Carrier(Protocol):
    """One runner's calls."""

    exchange: Exchange

    def open(self, memory: Memory, stack: ExitStack, poison: int | None) -> dict[str, int]:
        """Lay out what the runner is to find beside the exchange, and give its descriptors by name; `stack` closes them."""

    def give(self, call: int) -> None:
        """Lay the inputs of a call out."""

    def draw(self, chance: random.Random) -> list[Patch]:
        """Change a few elements of the inputs, which stay changed."""

    def draw_chain(self, chance: random.Random, calls: int, judged: int) -> list[list[Patch]]:
        """Do so before each of some calls in a chain, of which that number `judged`, or `NONE`, will be taken."""

    def take(self, call: int | None, run: int, poison: int | None, *, compare: bool) -> str:
        """Keep the outputs of a call's run, and what its inputs were; name an input that the call changed."""


class HostCarrier:
    """Through memory that the runner shares with this process."""

    def __init__(self, store: HostStore) -> None:
        """Carry what is in `store`."""
        self.exchange = Exchange(store.abi)
        self._store = store
        self._own = False
        self._judged: numpy.ndarray | None = None

    def open(self, memory: Memory, stack: ExitStack, poison: int | None) -> dict[str, int]:
        """Give parameters in memory of their own."""
        self._memory = memory
        parameters = Memory(self._store.parameters.end)
        stack.callback(parameters.close)
        self._store.parameters.fill(parameters, self._store.parameters.raw(self._store.inputs_memory))
        self._poison(poison)
        return {"parameters": parameters.fd}

    def give(self, call: int) -> None:
        """Lay the inputs of a call out."""
        self._given, self._own, self._judged = call, False, None
        self._inputs = self._store.inputs(call).raw(self._store.inputs_memory)
        # values are drawn of what was given: drawn of what they have become, those of a few elements would soon be all the same
        self._pools = self._elements(self._inputs)
        self.exchange.inputs.fill(self._memory, self._inputs)

    def draw(self, chance: random.Random) -> list[Patch]:
        """Change a few elements of the inputs, which stay changed."""
        if not self._own:
            self._inputs, self._own = self._inputs.copy(), True
        specs, now = self._store.abi.inputs, self._elements(self._inputs)
        drawn = patching.draw(specs, self._pools, chance)
        for argument in patching.floats_of(specs):
            changed = [patch for patch in drawn if patch.argument == argument]
            values = np.frombuffer(b"".join(patch.value for patch in changed), dtype=np.uint8)
            now[argument][[patch.element for patch in changed]] = values.reshape(len(changed), -1)
        return drawn

    def _elements(self, inputs: numpy.ndarray) -> dict[int, numpy.ndarray]:
        """View inputs as elements, by argument."""
        places = zip(self._store.abi.inputs, self.exchange.inputs.at(0).offsets, strict=True)
        return {i: patching.elements_of(inputs[at : at + spec.nbytes], spec) for i, (spec, at) in enumerate(places)}

    def draw_chain(self, chance: random.Random, calls: int, judged: int) -> list[list[Patch]]:
        """Do so before each of some calls in a chain, of which that number `judged`, or `NONE`, will be taken."""
        drawn = []
        for number in range(calls):
            drawn.append(self.draw(chance))
            if number == judged:
                self._judged = self._inputs.copy()
        return drawn

    def take(self, call: int | None, run: int, poison: int | None, *, compare: bool) -> str:
        """Keep the outputs of a call's run, and what its inputs were; name an input that the call changed."""
        changed = self._changed() if compare else ""
        inputs = self._inputs if self._judged is None else self._judged
        if call is not None:
            self._store.outputs(call, run).raw(self._store.outputs_memory)[:] = self.exchange.outputs.raw(self._memory)
            if call != self._given:
                self._store.inputs(call).raw(self._store.inputs_memory)[:] = inputs
        self._judged = None
        self._poison(poison)
        return changed

    def _changed(self) -> str:
        block = self.exchange.inputs
        for spec, place, start in zip(block.specs, block.offsets, block.at(0).offsets, strict=True):
            if not self._memory.equals(self._inputs[start : start + spec.nbytes], place):
                return spec.name
        return ""

    def _poison(self, byte: int | None) -> None:
        if byte is not None:
            self.exchange.outputs.raw(self._memory)[:] = byte


class DeviceCarrier:
    """Through device memory that the runner shares with the oracle server; this process sees none of it."""

    def __init__(self, store: DeviceStoreClient) -> None:
        """Carry what is in the device store that `store` names."""
        self.exchange = Exchange(store.abi, beside=True)
        self._store = store
        self._drawn: dict[tuple[int, int], bytes] = {}
        self._later: dict[tuple[int, int], bytes] = {}
        """What changed after the call of a chain that will be taken."""
        self._pools: dict[int, numpy.ndarray] = {}

    def open(self, memory: Memory, stack: ExitStack, poison: int | None) -> dict[str, int]:
        """Have the device memory made."""
        return self._store.share(poison, stack)

    def give(self, call: int) -> None:
        """Lay the inputs of a call out."""
        self._drawn, self._later = {}, {}
        self._store.ask("give", call=call)

    def draw(self, chance: random.Random) -> list[Patch]:
        """Change a few elements of the inputs, which stay changed."""
        if not self._pools and patching.floats_of(self._store.abi.inputs):
            self._pools = self._read_pools()
        drawn = patching.draw(self._store.abi.inputs, self._pools, chance)
        self._drawn |= self._later | {(patch.argument, patch.element): patch.value for patch in drawn}
        self._later = {}
        return drawn

    def draw_chain(self, chance: random.Random, calls: int, judged: int) -> list[list[Patch]]:
        """Do so before each of some calls in a chain, of which that number `judged`, or `NONE`, will be taken."""
        drawn = [self.draw(chance) for _ in range(judged + 1)]
        first, self._drawn = self._drawn, {}
        drawn += [self.draw(chance) for _ in range(calls - judged - 1)]
        self._drawn, self._later = first, self._drawn
        return drawn

    def take(self, call: int | None, run: int, poison: int | None, *, compare: bool) -> str:
        """Keep the outputs of a call's run, and what its inputs were; name an input that the call changed."""
        first, later = self._drawn, self._later
        self._drawn, self._later = {}, {}
        if not later or call is None:
            return self._taken(first | later, call=call, run=run, poison=poison, compare=compare)
        # with the inputs of the call that is taken, and then what they became
        self._taken(first, call=call, run=run, compare=False)
        return self._taken(later, call=None, poison=poison, compare=compare)

    def _taken(self, drawn: dict[tuple[int, int], bytes], **fields: object) -> str:
        patches = [(argument, element, value.hex()) for (argument, element), value in drawn.items()]
        done = self._store.ask("take", patches=patches, **fields)
        return DeviceStoreAnswer.model_validate_json(done.answer).changed

    def _read_pools(self) -> dict[int, numpy.ndarray]:
        contents = np.frombuffer(self._store.ask("pool").answer, dtype=np.uint8)
        specs = self._store.abi.inputs
        found: dict[int, numpy.ndarray] = {}
        start = 0
        floats = patching.floats_of(specs)
        count = len(contents) // sum(ITEM_BYTES[specs[argument].dtype] for argument in floats)
        for argument in floats:
            end = start + count * ITEM_BYTES[specs[argument].dtype]
            found[argument] = contents[start:end].reshape(count, -1)
            start = end
        return found


def carrier(store: HostStore | DeviceStoreClient) -> Carrier:
    """Choose by where the tensors are."""
    return HostCarrier(store) if isinstance(store, HostStore) else DeviceCarrier(store)
