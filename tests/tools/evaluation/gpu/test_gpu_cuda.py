"""Candidates in CUDA C++ on a GPU. Run with `pytest -m gpu tests/tools/evaluation/gpu/test_gpu_cuda.py`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tools.errors import UserError
from tools.evaluation import EvaluationRequest, LocalPool
from tools.hardware import detect_sheet
from tools.hardware.devices import first_device
from tools.machine_code.compilers import missing_tools
from tools.problems import load_problem, small_variants
from tools.records import Evaluation, HardwareSheet

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(first_device() is None, reason="this machine has no NVIDIA GPU"),
    pytest.mark.skipif(bool(missing_tools()), reason="this machine cannot build CUDA C++"),
    pytest.mark.timeout(1200),
]

KERNELS = Path(__file__).parents[1] / "cuda_kernels"
SOFTMAX = (KERNELS / "softmax.py").read_text()
GELU = (KERNELS / "gelu.py").read_text()

REFERENCES = {
    "softmax": """
import torch

rows = 16384
columns = 4096
SMALL_SIZES = [{"rows": 5, "columns": 1021}, {"rows": 1, "columns": 3}]


def double_softmax(x):
    return torch.softmax(x * 2, dim=-1)


def example_inputs():
    return (torch.randn(rows, columns),)
""",
    "gelu": """
import torch

rows = 16384
columns = 4096
SMALL_SIZES = [{"rows": 5, "columns": 1021}, {"rows": 1, "columns": 3}]


def gelu_bias(x, bias):
    return torch.nn.functional.gelu(x + bias)


def example_inputs():
    return (torch.randn(rows, columns), torch.randn(columns))
""",
}

Judge = Callable[..., Evaluation]


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
def judge(tmp_path_factory: pytest.TempPathFactory, sheet: HardwareSheet) -> Iterator[Judge]:
    """Evaluate a source on the first GPU."""
    pool = LocalPool(tmp_path_factory.mktemp("pool"), first_device())
    folder = tmp_path_factory.mktemp("cuda")
    problems = {}
    for name, text in REFERENCES.items():
        (folder / f"{name}.py").write_text(text)
        problems[name] = load_problem(folder / f"{name}.py")

    def run(name: str, source: str, timeout_s: float = 240.0) -> Evaluation:
        problem = problems[name]
        variants = small_variants(problem)
        request = EvaluationRequest(
            problem=problem, variants=variants, candidate="c", source=source, target=sheet, timeout_s=timeout_s, stage="search"
        )
        return asyncio.run(pool.evaluate(request))

    yield run
    asyncio.run(pool.close())


@pytest.mark.parametrize(("name", "source"), [("softmax", SOFTMAX), ("gelu", GELU)])
def test_an_honest_kernel_is_built_checked_and_timed(judge: Judge, name: str, source: str) -> None:
    """CUDA C++ passes at all sizes with a measured time; its launch and the registers of its kernel are known."""
    found = judge(name, source)

    assert found.verdict == "PASS", (found.notes, found.log)
    assert found.timing is not None
    assert found.timing.speedups["eager"][1] > 1
    assert [launch.kind for launch in found.launches] == ["cuda"]
    assert any(f"{name}" in kernel.name and kernel.registers > 0 for kernel in found.kernels), found.notes
    assert "check" in found.phase_seconds
    # the runners load what the builder built: a check that compiled again would take half a minute
    assert found.phase_seconds["check"] < 15, found.phase_seconds


def test_what_it_runs_is_its_own(judge: Judge) -> None:
    """A kernel in CUDA C++ is the candidate's own, and calls of a library beside it are heard."""
    mixed = SOFTMAX.replace("out = torch.empty_like(x)", "out = torch.empty_like(x)\n        x = torch.relu(x) - torch.relu(-x)")

    assert judge("softmax", SOFTMAX).provenance == "authored"
    assert judge("softmax", mixed).provenance == "mixed"


def test_a_wrong_kernel_is_wrong(judge: Judge) -> None:
    """One that leaves out the division is WRONG, and has no time."""
    found = judge("softmax", SOFTMAX.replace(" - most) / sum;", " - most);"))

    assert found.verdict == "WRONG", (found.notes, found.log)
    assert found.timing is None


def test_a_last_block_that_is_left_out_is_wrong(judge: Judge) -> None:
    """One that handles whole blocks of 1024 elements only is caught at the sizes as written or at small ones."""
    broken = GELU.replace("(numel + 1023) / 1024", "numel / 1024").replace("at += step)", "at += numel)")

    assert judge("gelu", broken).verdict in ("WRONG", "UNSTABLE")


def test_a_compile_error_is_said_briefly(judge: Judge) -> None:
    """An error of nvcc fails the build, and the log has its line and not the command lines."""
    found = judge("softmax", SOFTMAX.replace("most, shared);", "most, share);"))

    assert found.verdict == "BUILD_FAILED", (found.notes, found.log)
    assert 'identifier "share" is undefined' in found.log
    assert "-isystem" not in found.log


def test_a_missing_symbol_fails_the_build(judge: Judge) -> None:
    """A function that is declared and nowhere defined is found when the library is loaded by the builder."""
    signature = "launch_softmax(const float* x, float* out, int rows, int columns, cudaStream_t stream) {"
    found = judge("softmax", SOFTMAX.replace(signature, signature.replace("launch_softmax", "another_name")))

    assert found.verdict == "BUILD_FAILED", (found.notes, found.log)
    assert "launch_softmax" in found.log


def test_an_illegal_access_ends_its_own_process_only(judge: Judge) -> None:
    """A write far outside its memory crashes the candidate, and the next one passes."""
    broken = SOFTMAX.replace("out += (long long)blockIdx.x * columns;", "out += 1000000000000LL + (long long)blockIdx.x * columns;")

    assert judge("softmax", broken).verdict == "CRASHED"
    assert judge("softmax", SOFTMAX).verdict == "PASS"


def test_flags_of_another_architecture_are_refused(judge: Judge) -> None:
    """The architecture is the target's: a flag that names another fails the build with the reason."""
    found = judge("softmax", SOFTMAX.replace('["-O3"]', '["-O3", "-arch=sm_80"]'))

    assert found.verdict == "BUILD_FAILED"
    assert "-arch=sm_80" in found.log
