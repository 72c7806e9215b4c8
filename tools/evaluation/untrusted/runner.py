"""The runner: imports the candidate and runs one call after the other, seeing only the ABI, parameters and the current inputs."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from tools.evaluation.untrusted import caller_stream, extensions, fake_device, gpu_stand_in, loading, warmup
from tools.evaluation.untrusted.audit import heard_in
from tools.evaluation.untrusted.caller_stream import CallerStream
from tools.evaluation.untrusted.chain_caller import ChainCaller
from tools.evaluation.untrusted.poison import poison
from tools.evaluation.untrusted.sealed import SealedModel
from tools.evaluation.untrusted.taken_outputs import TakenOutputs
from tools.evaluation.wire import chained_calls, fd_messages, kernel_cache, patching, source_text
from tools.evaluation.wire.chain_board import ChainBoard, Word, kept_calls
from tools.evaluation.wire.channel import Command, Exchange, Load, Order, Reply, State, fill_pattern
from tools.evaluation.wire.device_memory import attach
from tools.evaluation.wire.driver_api import Driver, DriverError
from tools.evaluation.wire.jobs.runner import BEGUN, CONTEXT, START, WARM, RunnerJob
from tools.evaluation.wire.lead_in import ColdCache, lead_in
from tools.evaluation.wire.memory import Block, Memory
from tools.evaluation.wire.phase import Phase
from tools.evaluation.wire.precision import set_precision
from tools.evaluation.wire.red_zones import Flanked
from tools.evaluation.wire.stream_gate import Gate, gate, load_ahead
from tools.evaluation.wire.written import Written, given_inputs
from tools.float8 import writable
from tools.records import ScalarSpec

if TYPE_CHECKING:
    import torch


_KEPT_BYTES = 256 << 20
"""Device memory that is kept for the candidate's next size: to give it back and ask for it again waits for whoever starts CUDA."""


class Runner:
    """A candidate at work."""

    def __init__(self, phase: Phase, job: RunnerJob) -> None:
        """Import the candidate, make its module, load its parameters, and make room for inputs."""
        import torch

        self._job = job
        self._abi = job.abi
        self._cuda = job.device != "cpu"
        torch.set_num_threads(job.threads)
        set_precision(job.precision)
        self._modes = contextlib.ExitStack()
        self._modes.enter_context(torch.no_grad())
        if not self._cuda:
            gpu_stand_in.install(job.sheet)
            from tools.evaluation.untrusted.interpreter import teaching

            teaching.install()
            self._modes.enter_context(fake_device.on_device("cpu"))
        carried = phase.shared.get("carried")
        self._exchange = Exchange(job.abi, beside=carried is not None)
        self._memory = Memory.attach(phase.shared["exchange"])
        self._tensors = self._memory if carried is None else attach(carried, self._exchange.outputs.end, job.device)
        self._flanked = [Flanked(spec, job.device) for spec in job.abi.inputs] if job.plan is None else []
        self._inputs = [flanked.place(shifted=False) for flanked in self._flanked]
        self._cold = ColdCache(job.flush_bytes, job.device) if job.flush_bytes else None
        parameters = Memory.attach(phase.shared["parameters"]) if carried is None else self._tensors
        values = Block(job.abi.parameters).tensors(parameters)
        self._sealed = SealedModel(job.plan, job.abi, values) if job.plan is not None else None
        if self._sealed is not None:
            self._inputs = self._sealed.inputs
        self._caller = CallerStream() if self._cuda else None
        self._gate = self._made_gate(phase)
        if self._caller is not None:
            caller_stream.answer_when_done()
        self._module: Any = None
        self._pack: Callable[[], object] | None = self._sealed.pack if self._sealed is not None else None
        self._model: Any = self._sealed or self._candidate(phase, job, values)
        self._written = Written(job.abi, lambda place: self._inputs[place], self._state)
        self._outputs = TakenOutputs(job.abi.outputs, job.device, self._written.now, job.abi.aliases)
        del values
        if parameters is not self._tensors:
            parameters.close()

    def _candidate(self, phase: Phase, job: RunnerJob, values: list[torch.Tensor]) -> Any:
        """Import the candidate and make its module with the parameters' `values`."""
        if (folder := kernel_cache.cache_folder()) is not None:
            kernel_cache.unpack(warmup.host_modules(), folder)
            kernel_cache.unpack(job.cache, folder)
        if source_text.builds_extension(job.source):
            extensions.install(job.sheet)
        model = loading.make_model(loading.import_candidate(job.source, phase.scratch), job.abi)
        names = [spec.name for spec in job.abi.parameters]
        loading.load_parameters(model, dict(zip(names, values, strict=True)), job.abi.parameters)
        self._module = model = model.to(job.device)
        step = loading.packing_step(model)
        if step is not None and any(spec.dynamic for spec in job.abi.parameters):
            # the problem's weights change from call to call: each pays for what it makes of them
            return lambda *inputs: (step(), model(*inputs))[1]
        self._pack = step
        if step is not None:
            step()
        return model

    def obey(self, command: Command) -> Reply:
        """Do what is asked for and answer."""
        if command.order is Order.PACK:
            return self.pack()
        if command.order is Order.CHAIN:
            return self.chain(command)
        return self.call(command) if command.order is Order.CALL else self.collect(command.number)

    def call(self, command: Command) -> Reply:
        """Take the inputs, poison, run once, and say how long it thinks it took."""
        self._outputs.forget()
        if command.load & Load.ALL:
            self._place(command.load)
            for target, source in zip(given_inputs(self._inputs, self._written), self._sources(), strict=True):
                target.copy_(source)
        self._written.put_back()
        if not command.load & Load.UNPOISONED:
            self._poison(command.load)
        arguments = self._arguments()
        patches = self._staged(command) if command.load & Load.PATCHES else []
        if self._cuda:
            lead_in(self._cold, bool(command.load & Load.PRIMED))
        for index, where, values in patches:
            # on the device's queue behind the lead-in: work that starts before the call finds stale inputs
            for value in (self._inputs[index], *([self._written.given[index]] if index in self._written.given else [])):
                flat = writable(value.view(-1))
                flat.index_copy_(0, where.to(flat.device, non_blocking=True), values.to(flat.device, non_blocking=True))
        if command.load & Load.AUDIT:
            self._exchange.write_heard(self._memory, list(heard_in(lambda: self._model(*arguments))))
            return Reply(State.DONE)
        late = bool(command.load & Load.LATE)
        keep = partial(self._outputs.take, late=late)
        return self._timed(lambda: self._model(*arguments), keep, primed=bool(command.load & Load.PRIMED))

    def chain(self, command: Command) -> Reply:
        """Make the calls that are on the board, behind the gate, and keep the outputs of the last ones."""
        if self._gate is None:
            return Reply(State.UNABLE)
        self._outputs.make_room(kept_calls(self._abi))
        caller = ChainCaller(self._model, self._arguments, self._outputs, self._caller)
        chained_calls.issue(self._board, self._gate, self._inputs, self._cold, caller, command.load, self._written)
        chained_calls.settle(self._cold)
        self._board.set(Word.ENDED, self._board.get(Word.SEQUENCE))
        return Reply(State.STRAYED if caller.strayed else State.DONE)

    def pack(self) -> Reply:
        """Pack the weights once more, with a cold cache, and say how long their user waits for that."""
        if self._pack is None:
            raise loading.InterfaceError(f"ModelNew has no {source_text.PACKING}")
        if self._cuda:
            lead_in(self._cold, primed=False)
            chained_calls.settle(self._cold)
        start = time.perf_counter()
        self._pack()
        chained_calls.settle(self._cold)
        spent = (time.perf_counter() - start) * 1e6
        return Reply(State.DONE, spent, spent)

    def _poison(self, load: Load) -> None:
        poison(self._job.device, [spec.nbytes for spec in self._abi.returned], bool(load & Load.POISON_B))
        if self._sealed is not None:
            self._sealed.poison(fill_pattern(bool(load & Load.POISON_B)))

    def _place(self, load: Load) -> None:
        """Put the inputs where the call wants them, the zones around them painted; a sealed model keeps its own."""
        for index, flanked in enumerate(self._flanked):
            self._inputs[index] = flanked.place(shifted=bool(load & Load.SHIFTED))
            flanked.paint(fill_pattern(bool(load & Load.POISON_B)))

    def collect(self, number: int) -> Reply:
        """Put the outputs of that call of the last chain, or of the last call, shapes and inputs as they are now into the shared memory."""
        import torch

        if self._sealed is not None:
            self._sealed.check_borders()
        exchange = self._exchange
        exchange.write_shapes(self._memory, self._outputs.shapes())
        # a sealed model's outputs are those of its plan: what forward returned was looked at before
        exchange.write_structure(self._memory, self._outputs.structure if self._sealed is None else self._abi.returns)
        late = self._outputs.collect(exchange.outputs.tensors(self._tensors), number)
        for target, value in zip(self._sources(), given_inputs(self._inputs, self._written), strict=True):
            target.copy_(value)
        for flanked, zones in zip(self._flanked, exchange.zones.tensors(self._memory), strict=False):
            flanked.copy_to(zones)
        if self._cuda:
            torch.cuda.synchronize()
        return Reply(State.COLLECTED, late=late)

    def close(self) -> None:
        """Give back what this size held, on the device, unless it was little, and of the memory that is shared."""
        self._modes.close()
        if self._gate is not None:
            self._gate.close()
        del self._model, self._module, self._pack, self._sealed, self._inputs, self._written, self._flanked, self._outputs
        del self._cold, self._gate
        if self._tensors is not self._memory:
            self._tensors.close()
        self._memory.close()
        gc.collect()
        if self._cuda:
            import torch

            if torch.cuda.memory_reserved() > _KEPT_BYTES:
                torch.cuda.empty_cache()

    def _arguments(self) -> list[Any]:
        inputs = iter(self._inputs)
        return [a.value if isinstance(a, ScalarSpec) else next(inputs) for a in self._abi.arguments]

    def _state(self, name: str) -> torch.Tensor:
        """Give a parameter or buffer, whatever tensor that is now."""
        found: torch.Tensor = self._sealed.parameter(name) if self._sealed is not None else self._module.state_dict()[name]
        return found

    def _sources(self) -> list[torch.Tensor]:
        return self._exchange.inputs.tensors(self._tensors)

    def _staged(self, command: Command) -> list[tuple[int, torch.Tensor, torch.Tensor]]:
        """Argument, places and values of the elements that change, in memory the device can copy from by itself."""
        patches = self._exchange.read_patches(self._memory, command.number)
        staged = patching.staged(patches, [value.dtype for value in self._inputs])
        if not self._cuda:
            return [(index, where, values) for index, (where, values) in staged.items()]
        return [(index, where.pin_memory(), values.pin_memory()) for index, (where, values) in staged.items()]

    def _made_gate(self, phase: Phase) -> Gate | None:
        """Make the gate for chains where a board is shared; None where the driver knows none."""
        if "chain" not in phase.shared:
            return None
        self._board = ChainBoard(Memory.attach(phase.shared["chain"]))
        try:
            return gate(self._board, self._job.device, self._caller.stream if self._caller is not None else None)
        except DriverError:
            traceback.print_exc(limit=-2)
            return None

    def _timed(self, call: Callable[[], Any], keep: Callable[[Any], None], *, primed: bool) -> Reply:
        """Time one call by events, and what its host part took; `keep` gets its result behind the clock, before anything is waited for."""
        import torch

        if self._caller is None:
            start = time.perf_counter()
            result = call()
            spent = (time.perf_counter() - start) * 1e6
            keep(result)
            return Reply(State.DONE, spent, spent)
        event: Any = torch.cuda.Event
        first, last = event(enable_timing=True), event(enable_timing=True)
        if not primed:
            torch.cuda.synchronize()
        start = time.perf_counter()
        first.record(self._caller.stream)
        result = call()
        strayed = self._caller.was_left()
        last.record(self._caller.stream)
        spent = (time.perf_counter() - start) * 1e6
        keep(result)
        torch.cuda.synchronize()
        return Reply(State.STRAYED if strayed else State.DONE, first.elapsed_time(last) * 1e3, spent)


def _begin_cuda() -> None:
    """Do what comes before and makes no context: it disturbs nobody who is timed."""
    # who makes a context is told what is missing, and who launches a kernel
    with contextlib.suppress(DriverError):
        Driver().ask("cuInit", 0)
    with contextlib.suppress(Exception):
        warmup.load_triton()


def _load_what_calls_need() -> None:
    """Load it ahead: a candidate that is timed has the device to itself while it does so."""
    import torch

    lead_in(ColdCache(1024), primed=True)
    value = torch.zeros(4, device="cuda")
    where = torch.tensor([1]).pin_memory().to("cuda", non_blocking=True)
    value.index_copy_(0, where, torch.ones(1).pin_memory().to("cuda", non_blocking=True))
    value.cpu()
    load_ahead()
    with contextlib.suppress(Exception):
        warmup.start_triton()


def _wait_warm(phase: Phase) -> bool:
    """Start CUDA, up to where a device is needed at once, and the rest when that is asked for; False where it is not."""
    import torch

    _begin_cuda()
    phase.control.send(BEGUN)
    if phase.control.recv(64) != START:
        return False
    torch.empty(1, device="cuda")
    phase.control.send(CONTEXT)
    _load_what_calls_need()
    phase.control.send(WARM)
    return True


def _take_job(phase: Phase) -> bool:
    """Wait for a job and the memory that it shares; False where there will be none."""
    request = fd_messages.receive(phase.control)
    if request is None:
        return False
    message, descriptors = request
    phase.shared = dict(zip(message["names"], descriptors, strict=True))
    with os.fdopen(phase.shared.pop("job"), "rb") as file:
        file.seek(0)
        phase.job = file.read()
    return True


def _serve(phase: Phase, runner: Runner) -> None:
    while data := phase.control.recv(64):
        command = Command.unpack(data)
        if command.order is Order.STOP:
            return
        phase.control.send(runner.obey(command).pack())


def run(phase: Phase) -> None:
    """Take one job after the other, each a size of one candidate; whatever the candidate raises is printed and ends it."""
    try:
        if phase.job == WARM and not _wait_warm(phase):
            return
        while _take_job(phase):
            with contextlib.closing(Runner(phase, RunnerJob.model_validate_json(phase.job))) as runner:
                phase.control.send(Reply(State.READY).pack())
                _serve(phase, runner)
            del runner
    except Exception:
        traceback.print_exc(limit=-12)
        sys.stderr.flush()
        phase.control.send(Reply(State.FAILED).pack())
