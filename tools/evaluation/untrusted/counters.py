"""A candidate under Nsight Compute: the untrusted side, which only ever runs inside a sandbox.

The phase runs `ncu` around `main`, a fresh Python process, since Nsight Compute must be there before CUDA starts. What it
prints comes from a process that candidate code shares: evidence for a profile, never for a verdict.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tools.evaluation.untrusted import extensions, loading, warmup
from tools.evaluation.wire import kernel_cache, source_text
from tools.evaluation.wire.jobs.counters import CountersAnswer, CountersJob
from tools.evaluation.wire.memory import Block, Memory
from tools.evaluation.wire.phase import Phase
from tools.evaluation.wire.precision import set_precision
from tools.profiling.ncu import command
from tools.records import ScalarSpec

MAX_OUTPUT = 1 << 20
"""Bytes of what Nsight Compute prints that are kept."""
_WARM_UPS = 3
"""Calls before the one that is counted: kernels compile, tune and load their code."""
_BOOT = (
    "import sys; sys.path[:0] = sys.argv[3:]; "
    "from tools.evaluation.untrusted.counters import main; main(int(sys.argv[1]), int(sys.argv[2]))"
)


def count(phase: Phase) -> None:
    """Run Nsight Compute around the candidate and answer with what it printed."""
    job = CountersJob.model_validate_json(phase.job)
    if (folder := kernel_cache.cache_folder()) is not None:
        kernel_cache.unpack(warmup.host_modules(), folder)
    inputs = phase.shared["inputs"]
    given = os.memfd_create("job")
    os.write(given, phase.job)
    program = [sys.executable, "-I", "-B", "-c", _BOOT, str(given), str(inputs), *(path for path in sys.path if path)]
    line = command(Path(job.ncu), program, marked=True)
    # the candidate's own lines go to the log: only Nsight Compute writes here, as far as the candidate is honest
    process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, pass_fds=(given, inputs), cwd=phase.scratch)
    assert process.stdout is not None
    output = _bounded(process.stdout)
    answer = CountersAnswer(returncode=process.wait(), output=output.decode(errors="replace"))
    phase.answer(answer.model_dump_json().encode())


def _bounded(stream: Any) -> bytes:
    """Read a stream to its end and keep its beginning."""
    kept = b""
    while data := stream.read(1 << 16):
        kept += data[: MAX_OUTPUT - len(kept)]
    return kept


def main(job_fd: int, inputs_fd: int) -> None:
    """Make the candidate's module, warm it up, and call it once while the counters run."""
    os.dup2(2, 1)
    import torch

    job = CountersJob.model_validate_json(os.pread(job_fd, os.fstat(job_fd).st_size, 0))
    set_precision(job.precision)
    parameters = Block(job.abi.parameters)
    inputs = Block(job.abi.inputs, parameters.end)
    memory = Memory.attach(inputs_fd)
    if source_text.builds_extension(job.source):
        extensions.install(None)
    model = loading.make_model(loading.import_candidate(job.source, Path.cwd()), job.abi)
    values = dict(zip((spec.name for spec in job.abi.parameters), parameters.tensors(memory), strict=True))
    loading.load_parameters(model, values, job.abi.parameters)
    model.to("cuda")
    tensors = iter([value.cuda() for value in inputs.tensors(memory)])
    arguments = [a.value if isinstance(a, ScalarSpec) else next(tensors) for a in job.abi.arguments]
    # torch ships no types for it
    runtime: Any = torch.cuda.cudart()  # type: ignore[no-untyped-call]
    with torch.no_grad():
        for _ in range(_WARM_UPS):
            model(*arguments)
        torch.cuda.synchronize()
        runtime.cudaProfilerStart()
        model(*arguments)
        torch.cuda.synchronize()
        runtime.cudaProfilerStop()
    sys.stdout.flush()
