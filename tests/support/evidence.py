"""One real bundle for every test of evidence: evaluated once a session, by the interpreter; and ways to forge it."""

from __future__ import annotations

import asyncio
import atexit
import json
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from tools.evaluation import EvaluationRequest, LocalPool
from tools.evaluation.supervisor.timed.statistics import sample, speedup
from tools.evidence import Bundle, Origin, make_bundle, read_bundle
from tools.evidence.manifest import MANIFEST, render
from tools.hardware import load_sheet
from tools.problems import load_problem, small_variants
from tools.profiling.profile import profile_candidate
from tools.records import Evaluation, RawTimes, Tier, Timing

PROBLEM = """import torch

rows, columns = 64, 256
SMALL_SIZES = [{"rows": 3, "columns": 65}]


def half_exp(x):
    return torch.exp(x) * 0.5


def example_inputs():
    return (torch.randn(rows, columns),)
"""

KERNEL = """import torch
import triton
import triton.language as tl


@triton.jit
def half_exp_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.exp(tl.load(x_ptr + offsets, mask=mask)) * 0.5, mask=mask)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        half_exp_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
"""

WRONG_KERNEL = KERNEL.replace("* 0.5, mask", "* 0.5001, mask")


@cache
def scratch() -> Path:
    """A folder that goes with this process."""
    folder = Path(tempfile.mkdtemp(prefix="kernelwright-evidence-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def wary_pool() -> LocalPool:
    """One pool for every repetition, without a GPU; whoever uses it in a session closes it at its end."""
    return LocalPool(scratch() / "pool", None, parallel=2, wary=True)


@cache
def real_bundle() -> Bundle:
    """The bundle of a passing kernel, really evaluated."""
    file = scratch() / "half_exp.py"
    file.write_text(PROBLEM)
    problem = load_problem(file)
    sheet, pool = load_sheet("h200"), wary_pool()
    request = EvaluationRequest(problem=problem, variants=small_variants(problem), candidate="c", source=KERNEL, target=sheet)
    evaluation = asyncio.run(pool.evaluate(request))
    baselines = asyncio.run(pool.baselines(problem, sheet))
    bundle = make_bundle(request, evaluation, Origin.here(evaluator=pool.name), baselines)
    return bundle.model_copy(update={"profile": profile_candidate(problem, bundle.evaluation, baselines, sheet)})


def timed_elsewhere(candidate_us: float = 4.0, tier: Tier = Tier.IN_PROCESS) -> Bundle:
    """The same bundle as a machine with an H200 would have written it: its times are made up, and fit together."""
    bundle = real_bundle()
    steps = [0.98, 0.99, 1.0, 1.01, 1.02] * 10
    raw = RawTimes(
        candidate=tuple(candidate_us * step for step in steps),
        baselines={"eager": tuple(9.0 * step for step in steps), "compile": tuple(6.0 * step for step in steps)},
        bracket=(candidate_us + 0.5,) * 5,
    )
    timing = Timing(
        tier=tier,
        candidate=sample(raw.candidate),
        bracket=sample(raw.bracket),
        baselines={name: sample(times) for name, times in raw.baselines.items()},
        speedups={name: speedup(times, raw.candidate) for name, times in raw.baselines.items()},
        device="NVIDIA H200",
        raw=raw,
    )
    fields = bundle.evaluation.model_dump(mode="json") | {"estimate": None, "timing": timing.model_dump(mode="json")}
    fields["correctness"]["executor"] = "gpu"
    evaluation = Evaluation.model_validate_json(json.dumps(fields))
    return bundle.model_copy(update={"evaluation": evaluation, "baselines": None, "profile": None})


def forge(folder: Path, file: str, change: Callable[[Any], None]) -> None:
    """Change a JSON file of a bundle and give the bundle fresh hashes, as a forger would."""
    value = json.loads((folder / file).read_text())
    change(value)
    (folder / file).write_text(json.dumps(value))
    rehash(folder)


def rehash(folder: Path) -> None:
    """Write a fresh manifest of whatever is in a bundle."""
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != MANIFEST}
    (folder / MANIFEST).write_bytes(render(files))


def rename(folder: Path) -> None:
    """Make a forged bundle name its candidate by its new contents: the records can be read, so they can be renamed too."""
    bundle = read_bundle(folder)
    name = make_bundle(bundle.request, bundle.evaluation, bundle.origin).evaluation.candidate
    forge(folder, "evaluation.json", lambda value: value["evaluation"].update(candidate=name))
    if bundle.profile:
        forge(folder, "profile.json", lambda value: value.update(candidate=name))
