"""Where the tensors of large problems stay: on the device, in the oracle server's own memory, from the inputs to the judgement.

What a runner needs of them passes through memory that the two share, and only by the supervisor's word: parameters and the inputs of the
current call into it, outputs and inputs as the call left them out of it. A gigabyte takes a millisecond that way, and through the host's
memory a second. Where the outputs of several calls leave too little room for those who run, they alone wait in the host's memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tools.evaluation.wire import patching
from tools.evaluation.wire.byte_views import as_bytes, same_bytes
from tools.evaluation.wire.calls import CallPlan
from tools.evaluation.wire.channel import Exchange, Patch
from tools.evaluation.wire.device_memory import carried
from tools.evaluation.wire.jobs.device_store import PROOF, DeviceStoreAnswer, DeviceStoreJob
from tools.evaluation.wire.phase import Phase
from tools.evaluation.wire.tensor_store import HostStore, TensorStore
from tools.records import ABI, Problem, TensorSpec

if TYPE_CHECKING:
    import torch

SPILLED = 1 / 8
"""Share of the device's memory from which on a problem's outputs wait in the host's: those of four calls, the inputs, what is shared with
the runner, and what runner and baselines have of their own are about six times its tensors."""
_POOL = 4096
"""Elements of every float input that changed ones are chosen from, by chance."""


class DeviceStore:
    """The tensors of one plan."""

    def __init__(self, abi: ABI, device: str) -> None:
        """Begin with none."""
        self._abi = abi
        self.device = device
        """Where they are."""
        self._parameters = _made(abi.parameters, device)
        self._inputs: dict[int, list[torch.Tensor]] = {}
        self._outputs: dict[tuple[int, int], list[torch.Tensor]] = {}
        self._patched: dict[int, int] = {}
        """By call whose inputs are the first's with changed elements: how many of the changes are in them."""
        self._patches: list[Patch] = []
        self._current: list[torch.Tensor] = []
        self._before: list[list[Patch]] = []
        """What stood where elements of the current inputs were changed, by change."""
        self._exchange = Exchange(abi, beside=True)
        self._memory: Any = None
        self._waiting = "cpu" if abi.nbytes > SPILLED * _memory_of(device) else device

    def parameter_tensors(self) -> list[torch.Tensor]:
        """Give the parameters."""
        return self._parameters

    def input_tensors(self, call: int) -> list[torch.Tensor]:
        """Give the inputs of a call; there is room for them from now on."""
        if call in self._patched:
            values = [value.clone() for value in self._inputs[0]]
            patching.apply(self._patches[: self._patched[call]], values)
            return values
        if call not in self._inputs:
            self._inputs[call] = _made(self._abi.inputs, self.device)
        return self._inputs[call]

    def output_tensors(self, call: int, run: int = 0) -> list[torch.Tensor]:
        """Give what was taken after a call's run, on the device or in the host's memory."""
        return self._outputs[call, run]

    def forget(self, call: int) -> None:
        """Give back the outputs of a call, which can be judged no more."""
        self._outputs = {place: values for place, values in self._outputs.items() if place[0] != call}

    def close(self) -> None:
        """Keep everything: the supervisor says when it is to be dropped."""

    def share(self, poison: int | None) -> int:
        """Make the memory that a runner or a baseline will map, parameters in it, and give a descriptor of it."""
        self._memory, fd = carried(self._exchange.outputs.end, self.device)
        for target, value in zip(self._exchange.parameters.tensors(self._memory), self._parameters, strict=True):
            target.copy_(value)
        self._poison(poison)
        return fd

    def give(self, call: int) -> None:
        """Lay the inputs of a call out."""
        self._restore()
        source = self._inputs[call]
        # what a call does to its inputs is held against this
        self._current = source
        self._patches = []
        for target, value in zip(self._exchange.inputs.tensors(self._memory), source, strict=True):
            target.copy_(value)

    def take(self, job: DeviceStoreJob) -> str:
        """Keep the outputs, compare the inputs, poison the outputs' place; name an input that the call changed."""
        if job.call is not None:
            # first of all: what is written there later comes too late
            taken = [value.clone() for value in self._exchange.outputs.tensors(self._memory)]
            self._outputs[job.call, job.run] = [value.to(self._waiting) for value in taken]
            if self._waiting != self.device:
                del taken
                _release(self.device)
        if job.patches:
            new = [Patch(argument, element, bytes.fromhex(value)) for argument, element, value in job.patches]
            self._patches += new
            # in place: a copy of gigabytes would be there for a few elements
            self._before.append(patching.replaced(new, self._current))
        if job.call is not None and job.call not in self._inputs:
            self._patched[job.call] = len(self._patches)
        found = self._exchange.inputs.tensors(self._memory) if job.compare else []
        changed = [spec.name for spec, a, b in zip(self._abi.inputs, found, self._current, strict=False) if not same_bytes(a, b)]
        self._poison(job.poison)
        return changed[0] if changed else ""

    def pools(self) -> list[torch.Tensor]:
        """Choose elements of every float input of the first call by chance, by input."""
        import torch

        chosen = []
        for argument in patching.floats_of(self._abi.inputs):
            flat = self._inputs[0][argument].view(-1)
            chosen.append(flat[torch.randint(len(flat), (_POOL,), device=flat.device)].cpu())
        return chosen

    def end_calls(self) -> None:
        """Keep what is to be judged alone, inputs as they were made: there are no more calls."""
        self._restore()
        self._current = []
        self.stop_sharing()

    def stop_sharing(self) -> None:
        """Give up the memory shared with a process that has ended."""
        if self._memory is not None:
            self._memory.close()
            self._memory = None

    def _restore(self) -> None:
        """Take the changes of the current inputs back."""
        for before in reversed(self._before):
            patching.apply(before, self._current)
        self._before = []

    def _poison(self, byte: int | None) -> None:
        import torch

        if byte is not None:
            for spec, offset in zip(self._exchange.outputs.specs, self._exchange.outputs.offsets, strict=True):
                torch.as_tensor(self._memory.bytes_at(offset, spec.nbytes)).fill_(byte)


STORES: dict[str, DeviceStore] = {}
"""Those of this process, by the names that the supervisor gave them."""


def serve(phase: Phase) -> None:
    """Do what the supervisor says with one store."""
    job = DeviceStoreJob.model_validate_json(phase.job)
    if job.order == "drop":
        if job.store in STORES:
            STORES.pop(job.store).stop_sharing()
        return
    if job.order == "try":
        phase.given.append(_proof())
        return
    store, answer = STORES[job.store], DeviceStoreAnswer()
    # between the calls of a runner: looking for what may be freed takes longer than most of them
    phase.light = True
    if job.order == "share":
        store.stop_sharing()
        phase.given.append(store.share(job.poison))
    elif job.order == "give":
        assert job.call is not None
        store.give(job.call)
    elif job.order == "take":
        answer = DeviceStoreAnswer(changed=store.take(job))
    elif job.order == "pool":
        phase.answer(b"".join(as_bytes(pool).numpy().tobytes() for pool in store.pools()))
        return
    _settle(store)
    phase.answer(answer.model_dump_json().encode())


def _proof() -> int:
    """Make a little memory that outlives this call by its descriptor alone."""
    import torch

    memory, fd = carried(1, "cuda")
    torch.as_tensor(memory.bytes_at(0, memory.size)).fill_(PROOF)
    memory.close()
    return fd


def tensors_of(phase: Phase, index: int, call_plan: CallPlan, device_stores: tuple[str, ...], makes_on: str = "") -> TensorStore:
    """Open the tensors of a plan: in the device store named for it, made where there is a device to make it on, or in shared memory."""
    problem = Problem.model_validate_json(call_plan.problem)
    name = device_stores[index] if device_stores else ""
    if not name:
        return HostStore(problem.abi, call_plan.calls, phase.shared[f"inputs{index}"], phase.shared[f"outputs{index}"])
    if makes_on:
        STORES[name] = DeviceStore(problem.abi, makes_on)
    else:
        STORES[name].end_calls()
    return STORES[name]


def _memory_of(device: str) -> float:
    """Say how many bytes a device has; of the host, without limit."""
    import torch

    return torch.cuda.get_device_properties(device).total_memory if device != "cpu" else float("inf")


def _release(device: str) -> None:
    """Give memory that nobody uses back to the device."""
    import torch

    if device != "cpu":
        torch.cuda.empty_cache()


def _made(specs: Sequence[TensorSpec], device: str) -> list[torch.Tensor]:
    import torch

    return [torch.empty(spec.shape, dtype=getattr(torch, spec.dtype), device=device) for spec in specs]


def _settle(store: DeviceStore) -> None:
    """Wait until the device has done it: the other process does not wait for this one's work."""
    import torch

    if store.device != "cpu":
        torch.cuda.synchronize()
