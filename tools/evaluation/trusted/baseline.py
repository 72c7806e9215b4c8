"""The baseline: the reference itself, eager and compiled, timed in a trusted process of its own; it never meets a candidate."""

from __future__ import annotations

import contextlib
import importlib
import os
import traceback
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from tools.evaluation.trusted.timekeeper import Timekeeper
from tools.evaluation.wire.channel import Command, Exchange, Load, Order, Reply, State
from tools.evaluation.wire.configurations import Configurations, kernel_signature, write_configurations
from tools.evaluation.wire.device_memory import attach
from tools.evaluation.wire.driver_api import DriverError
from tools.evaluation.wire.jobs.baseline import COMPILER, BaselineJob
from tools.evaluation.wire.lead_in import ColdCache, lead_in
from tools.evaluation.wire.memory import Memory
from tools.evaluation.wire.phase import Phase
from tools.evaluation.wire.tensor_store import HostStore
from tools.evaluation.wire.written import Written
from tools.records import Problem, ScalarSpec

if TYPE_CHECKING:
    import torch


def warm_up() -> dict[str, str]:
    """Import what torch.compile needs, 2.4 s of each first call on an H200; starts no thread, and no CUDA where NVML can be asked.

    Inductor asks at its import whether there is a device. Where CUDA had to answer no fork could use it: then nothing is said, nor is it
    where there is no compiler to import.
    """
    import torch

    try:
        for module in ("torch._dynamo", "torch._inductor.compile_fx"):
            importlib.import_module(module)
    except ImportError:
        return {}
    pid = os.fork()
    if pid == 0:
        # torch ships no types for it
        spoilt: Any = torch.cuda._is_in_bad_fork
        os._exit(int(spoilt()))
    _, status = os.waitpid(pid, 0)
    return {COMPILER: "imported"} if status == 0 else {}


class NotYetError(Exception):
    """The compiled reference was called while its gate was shut."""


class Gate:
    """A backend of torch.compile: Inductor, whose kernels are compiled at once and not launched before the gate is opened.

    Its first launch of a kernel chooses among configurations by timing them, for which nobody else may be on the device; compiling, which
    takes far longer, disturbs nobody.
    """

    def __init__(self, backend: str = "inductor") -> None:
        """Begin shut."""
        self.is_open = False
        self._backend = backend

    def __call__(self, module: Any, inputs: Any) -> Any:
        """Compile one graph."""
        from torch._dynamo import lookup_backend

        compiled: Any = lookup_backend(self._backend)(module, inputs)

        def run(*arguments: Any) -> Any:
            if not self.is_open:
                raise NotYetError
            return compiled(*arguments)

        return run


class Baseline:
    """The reference, ready to be called in both ways."""

    def __init__(self, phase: Phase, job: BaselineJob) -> None:
        """Load parameters and inputs onto the device; compiling waits until it is asked for."""
        import torch

        from tools.evaluation.trusted.reference import DeclaredReference

        problem = Problem.model_validate_json(job.call_plan.problem)
        self._torch = torch
        self._reference = DeclaredReference(problem, "cuda")
        parameters, inputs = _given(phase, job, problem)
        self._reference.load({spec.name: value for spec, value in zip(problem.abi.parameters, parameters, strict=True)})
        tensors = iter(inputs)
        arguments = [a.value if isinstance(a, ScalarSpec) else next(tensors) for a in problem.abi.arguments]
        self._cold = ColdCache(job.flush_bytes)
        self._eager, self._arguments = self._reference.prepared(arguments)
        given = [value for value in self._arguments if isinstance(value, torch.Tensor)]
        self._written = Written(problem.abi, given.__getitem__, lambda name: self._eager.state_dict()[name])
        self._gate = Gate()
        self._compiled: Any = torch.compile(self._eager, backend=self._gate)
        self._problem, self._shared = problem, phase.shared
        self._timekeeper: Timekeeper | None = None
        self._configurations = job.configurations
        self._tuned: Any = torch.compile(self._eager, mode="max-autotune") if job.max_autotune else None

    def compile(self) -> Reply:
        """Compile what is called first, and launch nothing: after a break in the graph the rest is compiled with the first call."""
        with self._torch.no_grad(), self._reference.declared(), contextlib.suppress(NotYetError):
            self._compiled(*self._arguments)
        self._gate.is_open = True
        return Reply(State.DONE)

    def release(self) -> Reply:
        """Give back what PyTorch keeps for the next call: outputs, and what the reference makes on the way."""
        self._torch.cuda.empty_cache()
        return Reply(State.DONE)

    def call(self, command: Command) -> Reply:
        """Time one call by events, with a cold L2."""
        torch = self._torch
        function = self._compiled if command.load & Load.COMPILED else self._tuned if command.load & Load.TUNED else self._eager
        event: Any = torch.cuda.Event
        first, last = event(enable_timing=True), event(enable_timing=True)
        primed = bool(command.load & Load.PRIMED)
        with torch.no_grad(), self._reference.declared():
            self._written.put_back()
            lead_in(self._cold, primed)
            if not primed:
                torch.cuda.synchronize()
            first.record()
            function(*self._arguments)
            last.record()
            torch.cuda.synchronize()
        if self._configurations and function is self._compiled:
            from torch._inductor.codecache import PyCodeCache

            # torch ships no types of what it keeps
            modules: Any = PyCodeCache.modules
            write_configurations(self._configurations, chosen_configurations(modules))
            self._configurations = ""
        return Reply(State.DONE, first.elapsed_time(last) * 1e3)

    def chain(self, command: Command) -> Reply:
        """Hold the clock for a candidate's chained calls; UNABLE where the driver knows no gates on streams."""
        if self._timekeeper is None:
            board, values = (Memory.attach(self._shared[name]) for name in ("chain", "values"))
            try:
                self._timekeeper = Timekeeper(board, values, self._problem.abi, self._cold)
            except DriverError:
                traceback.print_exc(limit=-2)
                return Reply(State.UNABLE)
        return self._timekeeper.time(command)


def chosen_configurations(modules: Iterable[Any]) -> Configurations:
    """Read of each kernel that torch.compile's modules have launched which configuration it took, by the kernel's signature."""
    found: Configurations = {}
    for kernel in [value for module in modules for value in vars(module).values() if len(getattr(value, "launchers", ())) == 1]:
        config, name = kernel.launchers[0].config, kernel.fn.__name__
        blocks = {key: value for key, value in config.kwargs.items() if type(value) is int}
        given = {**blocks, "num_warps": config.num_warps, "num_stages": config.num_stages}
        found[kernel_signature(kernel.fn.src, name)] = given
    return found


def _given(phase: Phase, job: BaselineJob, problem: Problem) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Copy parameters and inputs to memory of this process, out of what it shares with the oracle server or with the supervisor."""
    if "carried" in phase.shared:
        exchange = Exchange(problem.abi, beside=True)
        memory = attach(phase.shared["carried"], exchange.outputs.end, "cuda")
        blocks = exchange.parameters.tensors(memory), exchange.inputs.tensors(memory)
        copies = [value.clone() for value in blocks[0]], [value.clone() for value in blocks[1]]
        del blocks
        memory.close()
        return copies
    store = HostStore(problem.abi, job.call_plan.calls, phase.shared["inputs0"], phase.shared["outputs0"])
    return [value.cuda() for value in store.parameter_tensors()], [value.cuda() for value in store.input_tensors(0)]


_ORDERS: dict[Order, Callable[[Baseline, Command], Reply]] = {
    Order.CALL: Baseline.call,
    Order.CHAIN: Baseline.chain,
    Order.COMPILE: lambda baseline, _: baseline.compile(),
    Order.RELEASE: lambda baseline, _: baseline.release(),
}


def cache_folder(job: BaselineJob, scratch: str) -> str:
    """Name the folder of compiled references by TF32's flags: Inductor's own key has cuBLAS's flag and leaves out cuDNN's (torch 2.13)."""
    flags = Problem.model_validate_json(job.call_plan.problem).policy.precision
    return f"{job.cache or scratch}/matmul{flags.matmul_tf32:d}-cudnn{flags.cudnn_tf32:d}"


def serve(phase: Phase) -> None:
    """Serve calls until told to stop; a call that fails is answered, printed, and ends nothing: compiling may fail."""
    job = BaselineJob.model_validate_json(phase.job)
    cache = cache_folder(job, str(phase.scratch))
    os.environ |= {"TORCHINDUCTOR_CACHE_DIR": cache, "TRITON_CACHE_DIR": f"{cache}/triton", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    baseline = Baseline(phase, job)
    phase.control.send(Reply(State.READY).pack())
    while True:
        data = phase.control.recv(64)
        command = Command.unpack(data) if data else Command(Order.STOP)
        if command.order is Order.STOP:
            return
        try:
            reply = _ORDERS[command.order](baseline, command)
        except Exception:
            traceback.print_exc(limit=-4)
            reply = Reply(State.FAILED)
        phase.control.send(reply.pack())
