"""The pool of this machine, without a GPU: verdicts, evidence, and an end that leaves nothing."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tools.errors import MachineError
from tools.evaluation import EvaluationRequest, LocalPool
from tools.evaluation.local import evaluations_at_once
from tools.evaluation.processes.zygote_client import ZygoteClient
from tools.evaluation.wire.defences import Defence
from tools.hardware import load_sheet
from tools.problems import load_problem
from tools.records import Evaluation, Problem, Tier

Judge = Callable[..., Evaluation]


def test_correct_kernel_passes_with_evidence(judge: Judge, kernel: str) -> None:
    """A correct kernel passes, with its errors, its launch, its registers, an estimated time and what isolated it."""
    found = judge(kernel)

    assert found.verdict == "PASS", (found.notes, found.log)
    assert found.correctness is not None
    assert found.correctness.executor == "interpreter"
    assert "rows=3, columns=65" in found.correctness.sizes
    assert [(launch.name, launch.grid) for launch in found.launches] == [("double_kernel", (4,))]
    assert found.kernels[0].registers > 0
    assert found.tier is Tier.ESTIMATED
    assert found.provenance == "authored"
    assert "limits" in found.sandbox
    assert {"python", "torch", "triton"} <= found.versions.keys()
    assert found.seconds > 0


def test_two_cores_have_two_evaluations_without_a_gpu() -> None:
    """A size that takes long would leave the second idle; beside a GPU, and on more cores, half of them is enough."""
    assert [evaluations_at_once(cores, gpu=False) for cores in (1, 2, 3, 16)] == [1, 2, 2, 8]
    assert [evaluations_at_once(cores, gpu=True) for cores in (1, 2, 3, 16)] == [1, 1, 1, 8]


@dataclass(frozen=True)
class Life:
    """What a pool that works in a relative folder did, and what it left."""

    judged: Evaluation
    refusal: BaseException
    """Of an evaluation after its end."""
    processes: set[int]
    """Children that were not there before."""
    left: list[Path]
    """What is in its folder."""


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory, request_for: Callable[..., EvaluationRequest], kernel: str) -> Life:
    """A pool from its start to its end, and beyond."""
    folder = tmp_path_factory.mktemp("life")
    # the first parent of all zygotes stays for the pools that come: it is there before this one starts
    parents = ZygoteClient("native", {"CUDA_VISIBLE_DEVICES": "", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, folder)
    parents.start()
    parents.close()
    before = _children()

    async def lived() -> tuple[Evaluation, BaseException]:
        pool = LocalPool(Path("results/scratch"), None, parallel=1)
        found = await pool.evaluate(request_for(kernel))
        await pool.close()
        with pytest.raises((MachineError, RuntimeError)) as refused:
            await pool.evaluate(request_for(kernel))
        return found, refused.value

    with contextlib.chdir(folder):
        found, refusal = asyncio.run(lived())
    return Life(found, refusal, _children() - before, list((folder / "results" / "scratch").iterdir()))


def test_a_relative_scratch_folder_will_do(life: Life) -> None:
    """`--out results` or `--home here` is as good as a whole path."""
    assert life.judged.verdict == "PASS"


def test_wrong_kernel_is_wrong_with_its_errors(judge: Judge, problem: Problem, kernel: str) -> None:
    """A kernel that computes something else is WRONG, and the note says where and by how much."""
    # an input next to zero may be doubled nearly right: there is none
    far = problem.model_copy(update={"source": problem.source.replace("torch.randn(rows, columns)", "1 + torch.rand(rows, columns)")})
    found = judge(kernel.replace("* 2,", "* 2.001,"), of=far)

    assert found.verdict == "WRONG"
    assert found.correctness is not None
    assert found.correctness.outputs[0].relative_l2 == pytest.approx(5e-4, rel=0.01)
    assert "rows=3, columns=65" in found.notes[0]
    assert any("calls are wrong: at rows=3, columns=65; as written." in note for note in found.notes)
    shown = found.correctness.wrong[0]
    assert (shown.size, shown.elements, shown.wrong) == ("rows=3, columns=65", 195, 195)
    assert shown.factor == pytest.approx(2.001 / 2)
    assert shown.first[0].got == pytest.approx(shown.first[0].expected * 2.001 / 2)
    assert found.estimate is None


def test_syntax_error_fails_the_build(judge: Judge) -> None:
    """A source that cannot be imported is BUILD_FAILED with its line."""
    found = judge("class ModelNew(:\n    pass\n")

    assert found.verdict == "BUILD_FAILED"
    assert "line 1" in found.log


def test_kernel_that_does_not_compile_fails_the_build(judge: Judge, kernel: str) -> None:
    """A Triton error is BUILD_FAILED with the compiler's words."""
    found = judge(kernel.replace("tl.arange(0, BLOCK)", "tl.arange(0, BLOCK - 1)"))

    assert found.verdict == "BUILD_FAILED"
    assert "power of 2" in found.log


def test_too_much_shared_memory_fails_the_build(judge: Judge, request_for: Callable[..., EvaluationRequest]) -> None:
    """A kernel that asks for more shared memory than a block of the target has is BUILD_FAILED, with both figures."""
    source = """
import torch, triton, triton.language as tl

@triton.jit
def greedy(x_ptr, out_ptr, steps, N: tl.constexpr):
    places = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    total = tl.zeros((N, N), tl.float32)
    for step in range(steps):
        a = tl.load(x_ptr + step * N * N + places).to(tl.float16)
        b = tl.load(x_ptr + step * N + places).to(tl.float16)
        total = tl.dot(a, b, total)
    tl.store(out_ptr + places, total)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        greedy[(1,)](x, out, 9, N=128, num_stages=6)
        return out
"""
    found = judge(source, target="rtx4090")

    assert found.verdict == "BUILD_FAILED"
    assert "shared memory" in found.notes[0]


def test_missing_model_fails_the_build(judge: Judge) -> None:
    """A source without ModelNew is BUILD_FAILED and says so."""
    found = judge("x = 1\n")

    assert found.verdict == "BUILD_FAILED"
    assert "ModelNew" in found.notes[0]


def test_hang_times_out_and_leaves_no_process(judge: Judge, kernel: str) -> None:
    """A candidate that hangs with a daemonised child ends at its deadline, and no process of it is left."""
    marker = f"kernelwright-marker-{os.getpid()}"
    hang = f"""
        import subprocess
        subprocess.Popen(["sh", "-c", "while true; do sleep 1; done # {marker}"], start_new_session=True)
        while True:
            pass
"""
    start = time.monotonic()
    found = judge(
        kernel.replace("        out = torch.empty_like(x)", hang + "        out = torch.empty_like(x)"),
        off=frozenset([Defence.STATIC_RULES]),
        timeout_s=2.0,
    )

    assert found.verdict == "TIMED_OUT"
    assert time.monotonic() - start < 30
    assert not [one.pid for one in psutil.process_iter(["cmdline"]) if marker in " ".join(one.info["cmdline"] or ())]


def test_cancelling_ends_the_candidate(pool: LocalPool, request_for: Callable[..., EvaluationRequest], kernel: str) -> None:
    """Cancelling an evaluation ends its processes long before their deadline."""
    # asleep, so that no other test waits for the processor meanwhile; `test_hang_times_out_and_leaves_no_process` has one that is not
    source = "import time\n" + kernel.replace("        out = torch.empty_like(x)", "        time.sleep(600)")
    unread = pool.weakened(frozenset({Defence.STATIC_RULES}))

    async def run() -> float:
        task = asyncio.create_task(unread.evaluate(request_for(source, timeout_s=200.0)))
        await asyncio.sleep(3.0)
        start = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return time.monotonic() - start

    assert asyncio.run(run()) < 20


def test_library_call_is_classed_as_library(judge: Judge) -> None:
    """A candidate that only calls torch passes and is called a library's."""
    found = judge("import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x.mul(2)\n")

    assert found.verdict == "PASS", found.log
    assert found.provenance == "library"
    assert found.launches[0].name == "aten.mul.Tensor"


def test_host_code_that_needs_values_is_checked_all_the_same(judge: Judge, kernel: str) -> None:
    """Host code that reads a value cannot be followed without a GPU: the check decides, and no time is estimated."""
    found = judge(kernel.replace("        out = torch.empty_like(x)", "        out = torch.empty_like(x) if x.sum().item() != 1e9 else x"))

    assert found.verdict == "PASS", found.log
    assert found.estimate is None
    assert any("could not be followed" in note for note in found.notes)


def test_autotuned_kernel_takes_its_first_configuration(judge: Judge, kernel: str) -> None:
    """An autotuned kernel is built and checked with its first configuration, and the notes say so."""
    tuned = '@triton.autotune([triton.Config({"BLOCK": 256}), triton.Config({"BLOCK": 512})], key=["n"])\n@triton.jit'
    source = kernel.replace("@triton.jit", tuned).replace(", BLOCK=1024)", ")").replace("cdiv(x.numel(), 1024)", "cdiv(x.numel(), 256)")
    found = judge(source)

    assert found.verdict == "PASS", (found.notes, found.log)
    assert found.launches[0].constants["BLOCK"] == 256
    assert any("autotuned" in note for note in found.notes)


def test_code_written_for_a_gpu_runs_without_one(judge: Judge, kernel: str) -> None:
    """Host code may ask for the device's properties, assert that tensors are on it, and allocate on `cuda`."""
    host = """        assert x.is_cuda
        assert torch.cuda.is_available()
        sms = torch.cuda.get_device_properties(0).multi_processor_count
        assert sms == 132
        out = torch.empty(x.shape, device="cuda", dtype=x.dtype)"""
    found = judge(kernel.replace("        out = torch.empty_like(x)", host))

    assert found.verdict == "PASS", (found.notes, found.log)
    assert found.provenance == "authored"


def test_what_bfloat16_loses_is_found_by_the_interpreter(judge: Judge, kernel: str) -> None:
    """A kernel that drops digits by way of bfloat16 is wrong without a GPU too, and the evaluation says what was emulated."""
    load = "tl.load(x_ptr + offsets, mask=mask)"
    found = judge(kernel.replace(load, load + ".to(tl.bfloat16).to(tl.float32)"))

    assert found.verdict == "WRONG"
    assert found.correctness is not None
    assert found.correctness.emulated == ("bfloat16",)
    assert 1e-3 < found.correctness.outputs[0].relative_l2 < 2.0**-8


def test_a_format_that_nothing_here_knows_is_not_judged(judge: Judge, kernel: str) -> None:
    """A kernel in AMD's float8, which the interpreter is not taught, has no verdict without a GPU."""
    load = "tl.load(x_ptr + offsets, mask=mask)"
    found = judge(kernel.replace(load, load + ".to(tl.float8e4b8).to(tl.float32)"), target="mi300x")

    assert found.verdict == "INFRASTRUCTURE", (found.notes, found.log)
    assert "float8_e4m3fnuz" in found.notes[0]


def test_problem_too_large_for_the_interpreter_is_not_judged(pool: LocalPool, kernel: str, tmp_path: Path) -> None:
    """Without small variants, a problem of many programs is INFRASTRUCTURE and never PASS."""
    file = tmp_path / "large.py"
    file.write_text("import torch\ndef double(x):\n    return x * 2\ndef example_inputs():\n    return (torch.randn(4096, 4096),)\n")
    request = EvaluationRequest(problem=load_problem(file), candidate="c", source=kernel, target=load_sheet("h200"))

    found = asyncio.run(pool.evaluate(request))

    assert found.verdict == "INFRASTRUCTURE"
    assert "GPU" in found.notes[0]


def test_baselines_without_a_gpu_are_estimated(pool: LocalPool, problem: Problem) -> None:
    """Without a GPU the reference's time is an estimate and called so."""
    found = asyncio.run(pool.baselines(problem, load_sheet("h200")))

    assert found.tier is Tier.ESTIMATED
    assert not found.samples
    assert found.best_us > 0


def test_closed_pool_leaves_no_process_and_no_folder(life: Life) -> None:
    """After close no child process is left, scratch is empty, and a further evaluation says that the pool is closed."""
    assert isinstance(life.refusal, MachineError | RuntimeError)
    assert not life.processes
    assert not life.left


def _children() -> set[int]:
    return {child.pid for child in psutil.Process().children()}


def test_class_is_of_what_really_ran(judge: Judge, kernel: str) -> None:
    """Host code that launches its kernel in the dry run and calls a library on real values is a library's."""
    source = kernel.replace(
        "        out = torch.empty_like(x)",
        "        if type(x) is torch.Tensor:\n            return x.mul(2)\n        out = torch.empty_like(x)",
    )
    found = judge(source)

    assert found.verdict == "PASS", (found.notes, found.log)
    assert [launch.name for launch in found.launches] == ["double_kernel"]
    assert found.provenance == "library"


def test_class_is_known_where_launches_are_not(judge: Judge, kernel: str) -> None:
    """Host code that could not be followed without a GPU is classed all the same, by the call that ran."""
    found = judge(kernel.replace("        out = torch.empty_like(x)", "        out = torch.empty_like(x) if x.sum().item() != 1e9 else x"))

    assert found.launches == ()
    assert found.provenance == "mixed"


def test_a_source_can_be_compiled_or_checked_alone(
    judge: Judge, pool: LocalPool, request_for: Callable[..., EvaluationRequest], kernel: str
) -> None:
    """Compiled only, nothing is known but launches and machine code; checked only, it is judged at the small sizes and has no time."""
    whole = request_for(kernel)
    built, checked = (asyncio.run(pool.evaluate(whole.model_copy(update={"depth": depth}))) for depth in ("build", "check"))
    assert (built.verdict, built.correctness, built.time_us) == ("BUILT", None, None)
    assert built.kernels[0].registers > 0
    assert built.launches
    assert (checked.verdict, checked.time_us) == ("PASS", None)
    assert checked.correctness is not None
    assert checked.correctness.sizes == ("rows=3, columns=65",)
    assert len({one.key for one in (whole, *(whole.model_copy(update={"depth": depth}) for depth in ("build", "check")))}) == 3
