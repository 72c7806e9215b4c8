"""Whether three pathological operators keep the others of a bench waiting: the same bench with and without them.

Thirty-seven small ordinary operators are written as files, and beside them a Python loop of 2,000 steps, a reference that torch.compile
works on for many minutes, and one of 60 GB. Prints each operator's wall time in both benches, their wall time, and the share of moments
at which the GPU did nothing.

Usage: python -m benchmarks.evaluator.slow_operators --out DIR [--jobs 6] [--evaluations 2] [--operators 37] [--devices all]
Where a host has two GPUs, `--bench without --devices 0` and `--bench with --devices 1` in one folder halve the wait; whichever ends last
prints both.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kernelwright.bench.files import BenchFolder

FILE = """import torch
import torch.nn.functional as F

{sizes}


def {name}({names}):
    {body}


def example_inputs():
    return ({inputs},)
"""
SIZES = "M, N, K = {m}, {n}, {k}"
BODIES = {
    "gelu": ("x", "return F.gelu(x)"),
    "scaled_tanh": ("x", "return torch.tanh(x * 0.5) + 1"),
    "clamped": ("x", "return torch.clamp(x * 3 - 1, -1.0, 1.0)"),
    "softmax": ("x", "return torch.softmax(x, dim=-1)"),
    "log_softmax": ("x", "return F.log_softmax(x, dim=-1)"),
    "row_sum": ("x", "return x.sum(dim=-1)"),
    "row_mean_square": ("x", "return (x * x).mean(dim=-1)"),
    "row_max": ("x", "return x.amax(dim=-1)"),
    "layer_norm": ("x", "return F.layer_norm(x, (N,))"),
    "rms": ("x", "return x * torch.rsqrt((x * x).mean(dim=-1, keepdim=True) + 1e-6)"),
    "swish": ("x", "return x * torch.sigmoid(x)"),
    "bias_relu": ("x, b", "return torch.relu(x + b)"),
    "residual": ("x, y", "return torch.sigmoid(x) * y + x"),
    "product": ("x, w", "return x @ w"),
    "product_gelu": ("x, w", "return F.gelu(x @ w)"),
    "log_sum_exp": ("x", "return torch.logsumexp(x, dim=-1)"),
    "running_sum": ("x", "return torch.cumsum(x, dim=-1)"),
    "squared_error": ("x, y", "return ((x - y) ** 2).mean()"),
    "hard_swish": ("x", "return F.hardswish(x) * 2"),
}
INPUTS = {"x": "torch.randn(M, N)", "y": "torch.randn(M, N)", "b": "torch.randn(N)", "w": "torch.randn(N, K)"}
SHAPES = (("small", 512, 1024, 256), ("odd", 771, 1536, 384))

LOOP = """import torch

STEPS, ROWS, COLUMNS = 2000, 64, 256


def loop(x):
    state = torch.zeros_like(x[:, 0])
    for step in range(STEPS):
        state = torch.tanh(state * 0.9 + x[:, step % COLUMNS])
    return state


def example_inputs():
    return (torch.randn(ROWS, COLUMNS),)
"""
COMPILES = """import torch

STEPS, ROWS, COLUMNS = 800, 64, 1024


def many_kernels(x):
    total = torch.zeros_like(x[:, 0])
    for step in range(STEPS):
        total = total + torch.softmax(x[:, : COLUMNS - step] * (step + 1), dim=-1).amax(dim=-1)
    return total


def example_inputs():
    return (torch.randn(ROWS, COLUMNS),)
"""
LARGE = """import torch

ROWS, COLUMNS = 120000, 125000


def large(x):
    return torch.relu(x)


def example_inputs():
    return (torch.randn(ROWS, COLUMNS),)
"""
BENCHES = ("without", "with")
PATHOLOGICAL = {"a_loop_of_2000_steps": LOOP, "b_compiles_for_minutes": COMPILES, "c_of_60_gb": LARGE}


def ordinary(most: int) -> dict[str, str]:
    """Texts of the ordinary operators by name."""
    found = {}
    for shape, m, n, k in SHAPES:
        for name, (names, body) in BODIES.items():
            inputs = ", ".join(INPUTS[one] for one in names.split(", "))
            sizes = SIZES.format(m=m, n=n, k=k)
            found[f"{name}_{shape}"] = FILE.format(name=name, names=names, body=body, sizes=sizes, inputs=inputs)
    return dict(list(found.items())[:most])


def write(folder: Path, texts: dict[str, str]) -> Path:
    """Write a suite; pathological operators begin with a letter and a line, so that they come first."""
    folder.mkdir(parents=True)
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    return folder


@contextmanager
def utilisation(devices: str) -> Iterator[list[int]]:
    """Sample the GPUs' utilisation in percent, four times a second; nothing where there is no nvidia-smi."""
    found: list[int] = []
    if shutil.which("nvidia-smi") is None:
        yield found
        return
    command = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "-lms", "250"]
    command += [] if devices == "all" else ["-i", devices]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def read() -> None:
        assert process.stdout is not None
        found.extend(int(line) for line in process.stdout if line.strip().isdigit())

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield found
    finally:
        process.terminate()
        process.wait()
        reader.join(5)


def bench(suite: Path, out: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """Run one bench; return what it took, in all and by operator."""
    limits = ["--jobs", str(arguments.jobs), "--evaluations", str(arguments.evaluations), "--stop-after", str(arguments.stop_after)]
    command = [sys.executable, "-m", "kernelwright", "bench", str(suite), "--out", str(out), "--devices", arguments.devices, *limits]
    began = time.monotonic()
    with utilisation(arguments.devices) as samples:
        ended = subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
    rows = BenchFolder(out).rows().values()
    return {
        "wall_s": round(time.monotonic() - began, 1),
        "exit": ended.returncode,
        "idle": round(sum(one == 0 for one in samples) / len(samples), 3) if samples else None,
        "operators": {row.problem: round(row.seconds, 1) for row in rows},
        "ended": {row.problem: f"{row.status}: {row.reason[:200]}" for row in rows if row.problem in PATHOLOGICAL},
    }


def report(without: dict[str, Any], with_them: dict[str, Any]) -> dict[str, Any]:
    """Hold the ordinary operators' times against each other."""
    names = sorted(without["operators"].keys() & with_them["operators"].keys())
    pairs = {name: (without["operators"][name], with_them["operators"][name]) for name in names}
    sums = [sum(pair[place] for pair in pairs.values()) for place in (0, 1)]
    return {
        "operators": len(names),
        "wall_s": [without["wall_s"], with_them["wall_s"]],
        "idle_share": [without["idle"], with_them["idle"]],
        "median_s": [round(statistics.median(pair[place] for pair in pairs.values()), 1) for place in (0, 1)] if pairs else None,
        "longest_s": [max(pair[place] for pair in pairs.values()) for place in (0, 1)] if pairs else None,
        "sum_ratio": round(sums[1] / sums[0], 3) if sums[0] else None,
        "pathological": {name: (with_them["operators"].get(name), with_them["ended"].get(name)) for name in PATHOLOGICAL},
        "seconds": pairs,
    }


def main() -> None:
    """Run both benches and print what they took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=6)
    parser.add_argument("--evaluations", type=int, default=2)
    parser.add_argument("--operators", type=int, default=37)
    parser.add_argument("--stop-after", type=float, default=0.0)
    parser.add_argument("--devices", default="all")
    parser.add_argument("--bench", choices=("both", *BENCHES), default="both")
    arguments = parser.parse_args()
    texts = ordinary(arguments.operators)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in BENCHES if arguments.bench == "both" else (arguments.bench,):
        suite = write(arguments.out / f"suite-{name}", texts | (PATHOLOGICAL if name == "with" else {}))
        told = bench(suite, arguments.out / f"bench-{name}", arguments)
        (arguments.out / f"{name}.json").write_text(json.dumps(told, indent=1))
    written = [arguments.out / f"{name}.json" for name in BENCHES]
    if all(path.is_file() for path in written):
        told = report(*(json.loads(path.read_text()) for path in written))
        (arguments.out / "slow-operators.json").write_text(json.dumps(told, indent=1))
        print(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
