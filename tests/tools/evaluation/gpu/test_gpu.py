"""On a GPU: times, tiers, and kernels that cheat the clock. Run with `pytest -m gpu tests/tools/evaluation`."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tools.errors import UserError
from tools.evaluation import EvaluationRequest, LocalPool
from tools.evaluation.wire.defences import NONE, Defence
from tools.hardware import detect_sheet
from tools.hardware.devices import first_device
from tools.problems import load_problem, small_variants
from tools.records import Baselines, Evaluation, HardwareSheet, Problem, Tier

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(first_device() is None, reason="this machine has no NVIDIA GPU"),
    pytest.mark.timeout(900),
]

REFERENCE = """
import torch

rows = 8192
columns = 8192
SMALL_SIZES = [{"rows": 5, "columns": 1021}]


class Model(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(columns))

    def forward(self, x):
        return torch.relu(x * self.weight)


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return [columns]
"""

CANDIDATE = """
import time

import torch
import triton
import triton.language as tl


@triton.jit
def scale_relu_kernel(x_ptr, weight_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask)
    weight = tl.load(weight_ptr + offsets, mask=mask)
    tl.store(out_ptr + row * columns + offsets, tl.maximum(x * weight, 0.0), mask=mask)


class ModelNew(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(columns))
        self.state = {}

    def run(self, x, out):
        rows, columns = x.shape
        scale_relu_kernel[(rows, triton.cdiv(columns, 2048))](x, self.weight, out, columns, BLOCK=2048)
        return out

    def forward(self, x):
        out = torch.empty_like(x)
        HOST
        return self.run(x, out)
"""


def with_host(lines: str) -> str:
    """Put lines before the launch."""
    body = "\n".join("        " + line for line in lines.strip("\n").splitlines())
    return CANDIDATE.replace("        HOST", body)


HONEST = with_host("")


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


@pytest.fixture
def measure(gpu_pool: LocalPool, large: Problem, sheet: HardwareSheet) -> Callable[..., Evaluation]:
    """Evaluate a source on the GPU."""

    def run(source: str, stage: str = "search", timeout_s: float = 120.0, off: frozenset[Defence] = NONE) -> Evaluation:
        request = EvaluationRequest.model_validate(
            {
                "problem": large.model_dump(),
                "variants": [variant.model_dump() for variant in small_variants(large)],
                "candidate": "c",
                "source": source,
                "target": sheet.model_dump(),
                "stage": stage,
                "timeout_s": timeout_s,
            }
        )
        return asyncio.run(gpu_pool.weakened(off).evaluate(request))

    return run


def test_correct_kernel_is_timed_beside_the_baselines(measure: Callable[..., Evaluation]) -> None:
    """A correct kernel passes at full size with a measured time, a tier, baselines, intervals, and clocks."""
    found = measure(HONEST)

    assert found.verdict == "PASS", (found.notes, found.log)
    assert found.correctness is not None
    assert "as written" in found.correctness.sizes
    assert found.correctness.executor == "gpu"
    assert found.timing is not None
    assert found.timing.tier in (Tier.BRACKETED, Tier.IN_PROCESS)
    assert set(found.timing.baselines) == {"eager", "compile"}
    ratio, low, high = found.timing.speedups["eager"]
    assert low <= ratio <= high
    assert found.estimate is None
    assert "seccomp" in found.sandbox
    assert found.gpu_seconds > 0
    assert "driver" in found.versions


def test_medians_repeat(measure: Callable[..., Evaluation]) -> None:
    """The same kernel, evaluated three times, has medians within three per cent, and never beats itself."""
    times = [found.timing.candidate.median_us for found in (measure(HONEST) for _ in range(3)) if found.timing]

    assert len(times) == 3
    assert max(times) / min(times) < 1.03


def test_baselines_are_measured(gpu_pool: LocalPool, large: Problem, sheet: HardwareSheet) -> None:
    """Eager and torch.compile are timed by themselves."""
    found = asyncio.run(gpu_pool.baselines(large, sheet))

    assert set(found.samples) == {"eager", "compile"}
    assert found.tier is not Tier.ESTIMATED
    assert found.samples["compile"].median_us < found.samples["eager"].median_us


def test_half_precision_is_wrong(measure: Callable[..., Evaluation]) -> None:
    """A downgrade to half precision is caught at full size."""
    assert measure(with_host("x = x.half().float()")).verdict == "WRONG"


def test_launch_that_never_ends_times_out_and_frees_the_device(measure: Callable[..., Evaluation]) -> None:
    """A kernel that spins is killed at its deadline, and the next candidate is timed as if nothing had been."""
    spin = with_host("torch.cuda._sleep(10**15)")

    assert measure(spin, timeout_s=20.0).verdict == "TIMED_OUT"
    assert measure(HONEST).verdict == "PASS"


def test_illegal_access_crashes_only_itself(measure: Callable[..., Evaluation]) -> None:
    """A sticky CUDA error ends its own process and nobody else's."""
    broken = HONEST.replace("out_ptr + row * columns", "out_ptr + row * columns * 1000000")

    assert measure(broken).verdict == "CRASHED"
    assert measure(HONEST).verdict == "PASS"


STALE = {
    "pointer cache": """
if x.data_ptr() in self.state:
    return self.state[x.data_ptr()]
self.state[x.data_ptr()] = self.run(x, out)
return out
""",
    "sampled fingerprint": """
print_of = tuple(x.flatten()[:: x.numel() // 7].tolist())
if print_of in self.state:
    return self.state[print_of]
self.state[print_of] = self.run(x, out)
return out
""",
    "replayed graph on a copy of the first input": """
if "graph" not in self.state:
    self.state["x"] = x.clone()
    self.run(self.state["x"], out)
    torch.cuda.synchronize()
    self.state["graph"] = torch.cuda.CUDAGraph()
    with torch.cuda.graph(self.state["graph"]):
        self.state["out"] = self.run(self.state["x"], torch.empty_like(x))
self.state["graph"].replay()
return self.state["out"]
""",
}


@pytest.mark.parametrize("name", STALE)
def test_old_answers_are_wrong(measure: Callable[..., Evaluation], name: str) -> None:
    """An answer kept from an earlier call is wrong: contents change in place, sometimes only a few of them."""
    assert measure(with_host(STALE[name])).verdict == "WRONG"


CLOCKS = {
    "patched events": """
torch.cuda.Event.elapsed_time = lambda *_: 1e-4
""",
    "side stream": """
side = self.state.setdefault("side", torch.cuda.Stream())
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(20):
        self.run(x, out)
return out
""",
}


@pytest.mark.parametrize("name", CLOCKS)
def test_lies_to_the_clock_get_no_time(measure: Callable[..., Evaluation], name: str) -> None:
    """Events that are shorter than the device or the supervisor's clock allows, or than the work left on other streams, give no time."""
    found = measure(with_host(CLOCKS[name]), off=frozenset([Defence.STATIC_RULES]))

    caught = found.verdict in ("IMPOSSIBLE_TIME", "TIMING_INCONSISTENT") or (found.verdict, found.rule) == ("CHEATED", "work-in-flight")
    assert caught, (found.verdict, found.rule, found.timing)
    assert found.timing is None


def test_side_stream_that_is_waited_for_passes(measure: Callable[..., Evaluation]) -> None:
    """A stream of the candidate's own is no offence where the current one waits for it."""
    honest = """
side = self.state.setdefault("side", torch.cuda.Stream())
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    self.run(x, out)
torch.cuda.current_stream().wait_stream(side)
return out
"""
    assert measure(with_host(honest)).verdict == "PASS"


def test_confirmation_makes_more_calls(measure: Callable[..., Evaluation]) -> None:
    """A confirmation times more calls, in new processes."""
    search, confirm = measure(HONEST), measure(HONEST, stage="confirm")

    assert search.timing is not None
    assert confirm.timing is not None
    assert confirm.timing.candidate.count > search.timing.candidate.count


LONG_TO_COMPILE = """
import torch


def long_chain(x):
    for turn in range(300):
        x = torch.sin(x) * (x + turn * NUMBER)
    return x


def example_inputs():
    return (torch.randn(64, 256),)
"""


def test_a_baseline_that_compiles_too_long_is_named_and_joins(tmp_path: Path, sheet: HardwareSheet) -> None:
    """Timed against eager at first, with a note; a candidate that is timed after torch.compile is done has both baselines."""
    file = tmp_path / "long_chain.py"
    # no compiler's cache has met it
    file.write_text(LONG_TO_COMPILE.replace("NUMBER", str(random.random())))
    pool, problem = LocalPool(tmp_path, compile_s=0.01), load_problem(file)

    async def both() -> tuple[Baselines, Baselines]:
        first = await pool.baselines(problem, sheet)
        for _ in range(60):
            await asyncio.sleep(1.0)
            later = await pool.baselines(problem, sheet)
            if "compile" in later.samples:
                break
        await pool.close()
        return first, later

    first, later = asyncio.run(both())
    assert set(first.samples) == {"eager"}
    assert "torch.compile: not within 0.01 s; it joins when it comes." in first.notes
    assert set(later.samples) == {"eager", "compile"}
    assert not later.notes
