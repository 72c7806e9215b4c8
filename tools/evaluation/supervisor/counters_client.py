"""Hardware counters of a candidate: the supervisor's side, which runs Nsight Compute in a sandbox and reads what it printed."""

from __future__ import annotations

import importlib.util
import os
import time
from pathlib import Path

from pydantic import ValidationError

import tools
from tools.evaluation.processes.child import DeadlineError
from tools.evaluation.processes.worker_pool import WorkerPool
from tools.evaluation.supervisor.timed.timing_store import TimingStore
from tools.evaluation.wire.jobs.counters import CountersAnswer, CountersJob
from tools.evaluation.wire.memory import Memory
from tools.evaluation.wire.tensor_store import HostStore
from tools.logs import telling_part
from tools.profiling.ncu import NO_COUNTERS, NO_PERMISSION, NOT_INSTALLED, Counters, find_ncu, read
from tools.records import ABI, EvaluationRequest

NO_DEVICE = "There is no GPU here, so no hardware counters were read."
NO_NETWORK = "Nsight Compute needs a network namespace of its own, which this machine does not allow: no hardware counters were read."
_START_S = 60.0
"""What Nsight Compute and a fresh torch may take beside the candidate's own time; about 5 s on an H200."""
_TRIAL = """
import torch


class ModelNew(torch.nn.Module):
    def forward(self):
        return torch.ones(1 << 20, device="cuda") * 2
"""
_MAX_ANSWER = 4 << 20
_PACKAGES = ("pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection")
"""What the counted process imports beside torch, triton and numpy."""


class CountersClient:
    """Reads counters in one pool of workers; what cannot work here is found out once."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._hopeless = ""

    def count(self, workers: WorkerPool, request: EvaluationRequest, cancel: int) -> Counters:
        """Count one call of the candidate; whatever fails is in the note."""
        ncu = find_ncu()
        if self._hopeless or ncu is None:
            return Counters(note=self._hopeless or NOT_INSTALLED)
        if not workers.isolation(gpu=True).namespaces:
            return Counters(note=NO_NETWORK)
        with TimingStore(workers, request.problem, 0, request.target, cancel, fresh=True) as held:
            held.fill()
            assert isinstance(held.store, HostStore)
            found = _count(workers, request, held.store.inputs_memory, ncu, cancel)
        if found.note in (NO_PERMISSION, NO_COUNTERS):
            self._hopeless = found.note
        return found


def try_counters(workers: WorkerPool, ncu: Path) -> str:
    """Count one library kernel in a sandbox and say why that fails; empty where it works."""
    if not workers.isolation(gpu=True).namespaces:
        return NO_NETWORK
    memory = Memory(0)
    try:
        job = CountersJob(ncu=str(ncu), abi=ABI(arguments=(), outputs=()), source=_TRIAL)
        found = ask_counters(workers, job, memory.fd, _START_S, -1, gpu=True)
    except DeadlineError:
        return f"it did not finish within {_START_S:g} s."
    finally:
        memory.close()
    return "" if found.figures else found.note


def _count(workers: WorkerPool, request: EvaluationRequest, inputs: Memory, ncu: Path, cancel: int) -> Counters:
    job = CountersJob(ncu=str(ncu), abi=request.problem.abi, source=request.source, precision=request.problem.policy.precision)
    limit = request.timeout_s + _START_S
    try:
        found = ask_counters(workers, job, inputs.fd, limit, cancel, gpu=True)
    except DeadlineError:
        return Counters(note=f"Nsight Compute did not finish within {limit:g} s.")
    walls = workers.isolation(gpu=True).model_copy(update={"loopback": True}).sentence
    return found.model_copy(update={"sandbox": walls})


def ask_counters(workers: WorkerPool, job: CountersJob, inputs: int, limit_s: float, cancel: int, *, gpu: bool) -> Counters:
    """Run the phase on the memory `inputs` and read its answer; raises DeadlineError after `limit_s` seconds."""
    answer = os.memfd_create("answer", os.MFD_CLOEXEC)
    trees, given = counting_trees(Path(job.ncu)), {"inputs": inputs, "answer": answer}
    data = job.model_dump_json().encode()
    try:
        with workers.untrusted(workers.native, "counters", data, given, gpu=gpu, cancel=cancel, readable=trees, loopback=True) as child:
            child.wait(time.monotonic() + limit_s)
        said = CountersAnswer.model_validate_json(os.pread(answer, min(os.fstat(answer).st_size, _MAX_ANSWER), 0))
    except ValidationError:
        return Counters(note=f"Nsight Compute gave no counters: {telling_part(child.log.text)} ({child.ending}).")
    finally:
        os.close(answer)
    found = read(said.output, said.returncode)
    if found.figures or found.note in (NO_PERMISSION, NO_COUNTERS):
        return found
    # the program's own last words say more than that it launched nothing
    return found.model_copy(update={"note": f"{found.note} The program said: {telling_part(child.log.text)}"})


def counting_trees(ncu: Path) -> tuple[str, ...]:
    """List what the counted process reads beside a runner's folders: this evaluator's code, pydantic, Nsight Compute."""
    trees = {Path(tools.__file__).resolve().parent, ncu.parent, ncu.resolve().parent}
    for package in _PACKAGES:
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:
            trees.add(Path(spec.origin).parent if spec.submodule_search_locations else Path(spec.origin))
    return tuple(sorted(map(str, trees)))
