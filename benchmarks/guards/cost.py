"""What a guard costs on the host, in nanoseconds a call: of modules that compute nothing, and of forwards that are replayed as CUDA graphs.

Usage: python -m benchmarks.guards.cost [FILE …] [--device cpu|cuda] [--graphs] [--calls 200] [--repeats 400]

Of each operator file a module is made with its constructor and parameters whose forward returns its first input, and called with a guard
and without one; a figure is the difference of the fastest repeats. With `--graphs`, on a GPU, generated forwards are captured instead: with
and without a guard they give the same bits, and a guarded call takes as much longer as it does without a graph: nothing of it is inside.
"""

from __future__ import annotations

import argparse
import ast
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.guards.kernels import emitted, load
from tools.codegen import trace
from tools.guards import contract_of, guarded, reference_text
from tools.problems import load_problem, open_problem, small_variants
from tools.records import Problem

OPERATORS = Path("data/operators")
IDLE = """
import torch

{reference}


class ModelNew(reference()):
    def forward(self, *inputs):
        return inputs[0]
"""


def main() -> None:
    """Print a row for each operator."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, default=sorted(OPERATORS.glob("*.py")))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--graphs", action="store_true", help="time replays of captured forwards, on a GPU")
    parser.add_argument("--calls", type=int, default=200, help="calls of a round (default: 200)")
    parser.add_argument("--repeats", type=int, default=400, help="rounds, of which the fastest counts (default: 400)")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.graphs:
        print("| captured forward | replay, ns a call | guarded, ns more | same bits |\n|---|---|---|---|")
        for file in given.files:
            graph_row(load_problem(file), given.calls, given.repeats)
        return
    print("| operator | tensors | guard, ns a call |\n|---|---|---|")
    for file in given.files:
        problem = load_problem(file)
        tensors = len(problem.abi.inputs) + len(problem.abi.parameters)
        print(f"| {problem.name} | {tensors} | {idle_cost(problem, given.device, given.calls, given.repeats):.0f} |", flush=True)


def idle_cost(problem: Problem, device: str, calls: int, repeats: int) -> float:
    """Time the guard of a problem, in nanoseconds a call, around a forward that does nothing."""
    source = IDLE.format(reference=reference_text(problem))
    small = (*small_variants(problem), problem)[0]
    bare, whole = (_module(text, small, device) for text in (source, _guarded(source, problem)))
    inputs = [value.to(device) if isinstance(value, torch.Tensor) else value for value in open_problem(small).inputs(1)]
    return _fastest(whole, inputs, calls, repeats) - _fastest(bare, inputs, calls, repeats)


def graph_row(problem: Problem, calls: int, repeats: int) -> None:
    """Print what a guard adds to a replayed forward; nothing where the forward cannot be captured."""
    graph = trace(problem)
    if graph.keeps_state or not graph.replayable:
        return
    source = emitted(problem, captured=True)
    small = (*small_variants(problem), problem)[0]
    bare, whole = (_module(text, small, "cuda") for text in (source, _guarded(source, problem)))
    inputs = [value.to("cuda") if isinstance(value, torch.Tensor) else value for value in open_problem(small).inputs(1)]
    with torch.no_grad():
        mine, other = whole(*inputs), bare(*inputs)
        same = torch.equal(mine, other) if isinstance(mine, torch.Tensor) else all(map(torch.equal, mine, other))
    plain = _fastest(bare, inputs, calls, repeats)
    print(f"| {problem.name} | {plain:.0f} | {_fastest(whole, inputs, calls, repeats) - plain:.0f} | {same} |", flush=True)


def _guarded(source: str, problem: Problem) -> str:
    return guarded(source, contract_of(problem, small_variants(problem)))


def _module(source: str, problem: Problem, device: str) -> Any:
    """Make a module of a file, with the reference's parameters."""
    opened = open_problem(problem)
    # kept: Triton reads the file again when it compiles
    module = load(source, Path(tempfile.mkdtemp()))(*ast.literal_eval(problem.abi.init))
    module.load_state_dict(opened.parameters())
    return module.train(problem.abi.training).to(device)


def _fastest(call: Callable[..., Any], inputs: list[Any], calls: int, repeats: int) -> float:
    """Time one call as the host sees it, in nanoseconds: the fastest of several rounds."""
    times = []
    with torch.no_grad():
        for _ in range(repeats + 1):
            began = time.perf_counter_ns()
            for _ in range(calls):
                call(*inputs)
            times.append((time.perf_counter_ns() - began) / calls)
            if torch.cuda.is_available():
                torch.cuda.synchronize()
    return min(times[1:])


if __name__ == "__main__":
    main()
