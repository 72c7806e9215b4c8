"""Times calls one after the other, as a user makes them, host code included.

Usage: python -m benchmarks.kernels.in_use OUT.jsonl FILE [FILE ...] [--calls 300]

Each FILE is an operator, of which the cost model's first choice is taken. Four ways to call it: eager, torch.compile, the kernel's file,
and the file loaded as `Result.module` does, which plays calls again. Nothing is judged; `same` says whether playing gives the same bits.
Of five chains the fastest counts, microseconds a call: until the device is done, and until the host is. It needs a GPU.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.kept_rows import KeptRows
from kernelwright.api.loading import load_module
from tools.codegen import emit, trace
from tools.cost.rank_schedules import modelled_choices
from tools.hardware import load_sheet
from tools.hardware.devices import first_device
from tools.problems import load_problem, open_problem

CHAINS, WARM = 5, 10


def main() -> None:
    """Time what is asked for, a row an operator."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--calls", type=int, default=300, help="of a chain (default: 300)")
    given = parser.parse_args()
    if first_device() is None:
        parser.error("this machine has no NVIDIA GPU")
    kept = KeptRows(given.out)
    for file in given.files:
        row = timed(file, given.calls)
        kept.add(row)
        print(json.dumps(row), flush=True)


def timed(file: Path, calls: int) -> dict[str, Any]:
    """Time one operator's calls in each way."""
    problem = load_problem(file)
    graph = trace(problem)
    choices = modelled_choices(graph, load_sheet("h200"), problem.policy)
    if not choices:
        return {"operator": file.stem, "why": "nothing is generated"}
    reference = open_problem(problem)
    inputs = reference.inputs(0, "cuda")
    with tempfile.TemporaryDirectory() as folder:
        kernel = Path(folder) / f"{file.stem}.py"
        kernel.write_text(emit(problem, graph, choices[0].schedule).source)
        module = load_module(kernel, problem.abi.init, reference.module).cuda()
        own: Any = getattr(type(module).forward, "__wrapped__", type(module).forward)
        ways: dict[str, Callable[..., Any]] = {
            "eager": reference.module.cuda(),
            "compile": torch.compile(reference.module),
            "file": lambda *given: own(module, *given),
            "loaded": module,
        }
        row: dict[str, Any] = {"operator": file.stem, **{name: chained(call, inputs, calls) for name, call in ways.items()}}
        with torch.no_grad():
            row["plays"], row["same"] = hasattr(type(module).forward, "__wrapped__"), _same(own(module, *inputs), module(*inputs))
    return row | {"device": torch.cuda.get_device_name(), "torch": torch.__version__}


def chained(call: Callable[..., Any], inputs: list[Any], calls: int) -> list[float]:
    """Time chains of calls: microseconds a call until the device is done, and until the host is."""
    found = []
    with torch.no_grad():
        for _ in range(WARM):
            call(*inputs)
        for _ in range(CHAINS):
            torch.cuda.synchronize()
            began = time.perf_counter()
            for _ in range(calls):
                call(*inputs)
            issued = time.perf_counter()
            torch.cuda.synchronize()
            found.append((time.perf_counter() - began, issued - began))
    return [round(seconds / calls * 1e6, 1) for seconds in min(found)]


def _same(one: Any, other: Any) -> bool:
    pairs = zip(*(each if isinstance(each, tuple) else (each,) for each in (one, other)), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


if __name__ == "__main__":
    main()
