"""On a GPU with Nsight Compute: counters of a candidate, read in the sandbox. Run with `pytest -m gpu`."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.tools.evaluation.gpu.test_gpu import HONEST, REFERENCE, with_host
from tests.tools.evaluation.gpu.test_gpu_cuda import REFERENCES, SOFTMAX
from tools.errors import UserError
from tools.evaluation import EvaluationRequest, LocalPool
from tools.evaluation.processes.worker_pool import WorkerPool
from tools.evaluation.supervisor.counters_client import try_counters
from tools.hardware import detect_sheet
from tools.hardware.devices import first_device
from tools.machine_code.compilers import missing_tools
from tools.problems import load_problem
from tools.profiling.ncu import Counters, find_ncu
from tools.profiling.profile import profile_candidate
from tools.records import FigureSource, HardwareSheet, Problem

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(first_device() is None or find_ncu() is None, reason="this machine has no NVIDIA GPU, or no Nsight Compute"),
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def sheet() -> HardwareSheet:
    """The sheet of this machine's GPU."""
    try:
        found = detect_sheet()
    except UserError as error:
        pytest.skip(str(error))
    assert found is not None
    return found


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    """A problem of 512 MiB, far beyond any L2."""
    file = tmp_path_factory.mktemp("gpu") / "scale_relu.py"
    file.write_text(REFERENCE)
    return load_problem(file)


@pytest.fixture(scope="module")
def gpu_pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalPool]:
    """The pool of the first GPU."""
    made = LocalPool(tmp_path_factory.mktemp("pool"), first_device())
    yield made
    asyncio.run(made.close())


@pytest.fixture(scope="module")
def ask(large: Problem, sheet: HardwareSheet) -> Callable[[str], EvaluationRequest]:
    """Make a request for a source."""
    return lambda source: EvaluationRequest(problem=large, candidate="c", source=source, target=sheet)


@pytest.fixture(scope="module")
def counted(gpu_pool: LocalPool, ask: Callable[[str], EvaluationRequest]) -> Counters:
    """The counters of the honest kernel."""
    return asyncio.run(gpu_pool.counters(ask(HONEST)))


def test_compulsory_bytes_are_counted(counted: Counters, large: Problem) -> None:
    """One kernel is counted; it reads its input from memory once and runs near the memory's rate; the sandbox is named."""
    figures = {figure.name: figure.value for figure in counted.figures}
    x = large.abi.inputs[0].nbytes

    assert counted.figures, counted.note
    assert len(counted.kernels) == 1
    assert "scale_relu" in counted.kernels[0]
    assert figures["dram_read_bytes"] == pytest.approx(x, rel=0.1)
    assert figures["dram_percent"] > 50
    assert {figure.source for figure in counted.figures} == {FigureSource.COUNTERS}
    assert "loopback" in counted.sandbox


def test_counters_reach_the_profile(
    counted: Counters, gpu_pool: LocalPool, ask: Callable[[str], EvaluationRequest], large: Problem, sheet: HardwareSheet
) -> None:
    """A profile with counters names memory as what limits a streaming kernel, on the counters' word."""
    evaluation = asyncio.run(gpu_pool.evaluate(ask(HONEST)))
    baselines = asyncio.run(gpu_pool.baselines(large, sheet))
    profile = profile_candidate(large, evaluation, baselines, sheet, counted)

    assert evaluation.verdict == "PASS", evaluation.notes
    assert "hardware's own counters" in profile.evidence or profile.figure("dram_percent") is not None


def test_a_candidate_that_raises_gives_a_note(gpu_pool: LocalPool, ask: Callable[[str], EvaluationRequest]) -> None:
    """No figures, the exception in the note, and the device free for the next."""
    found = asyncio.run(gpu_pool.counters(ask(with_host("raise ValueError('no such luck')"))))

    assert found.figures == ()
    assert "no such luck" in found.note


@pytest.mark.skipif(bool(missing_tools()), reason="this machine cannot build CUDA C++")
def test_cuda_cpp_is_profiled_too(gpu_pool: LocalPool, sheet: HardwareSheet, tmp_path: Path) -> None:
    """A kernel in CUDA C++ is counted under its own name, and its profile names memory as what limits it, with its registers."""
    (tmp_path / "softmax.py").write_text(REFERENCES["softmax"])
    problem = load_problem(tmp_path / "softmax.py")
    request = EvaluationRequest(problem=problem, candidate="c", source=SOFTMAX, target=sheet, timeout_s=240.0)
    evaluation = asyncio.run(gpu_pool.evaluate(request))
    baselines = asyncio.run(gpu_pool.baselines(problem, sheet))
    counters = asyncio.run(gpu_pool.counters(request))
    profile = profile_candidate(problem, evaluation, baselines, sheet, counters)

    assert counters.figures, counters.note
    assert any("softmax" in kernel for kernel in counters.kernels), counters.kernels
    assert profile.figure("dram_percent") is not None
    assert any(kernel.registers > 0 for kernel in evaluation.kernels), evaluation.notes
    assert "memory" in profile.bottleneck, (profile.bottleneck, profile.evidence)


def test_doctor_finds_it_working() -> None:
    """One library kernel is counted in a sandbox of this machine."""
    ncu = find_ncu()
    assert ncu is not None
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch).chmod(0o711)
        workers = WorkerPool(Path(scratch), first_device())
        try:
            workers.start()
            assert try_counters(workers, ncu) == ""
        finally:
            workers.close()
