"""Uses kernels as they were not made for, and counts what each use ends in: an error, the reference's result, or something else in silence.

Usage: python -m benchmarks.guards.corpus [SUITE …] [--fallback] [--limit N] [--seconds S] [--out ROWS.jsonl]

A SUITE is a KernelBench clone, one of its levels, or a folder of operator files; without one, the samples of `data/operators`. Every region
of a problem that can be generated is, with first parameters. Kernels run in Triton's interpreter at the problem's smallest variant.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

# read when kernels are defined
os.environ.setdefault("TRITON_INTERPRET", "1")

import torch
from torch.utils import _pytree

from benchmarks.guards.kernels import emitted, load
from benchmarks.guards.misuses import Use, misuses
from tools.guards import contract_of, guarded, reference_text
from tools.problems import load_problem, open_problem, small_variants
from tools.problems.mixed_sizes import mixed_variants
from tools.problems.suite import open_suite
from tools.records import Problem

REFUSED, RIGHT, VALUES, SILENT = "refused", "right", "values", "silent"
"""An error; the reference's result; indices out of range, which no look at shapes can see; any other result without an error."""
OPERATORS = Path("data/operators")
CLOSE = 1e-3
"""Relative error of results that are the same."""


@dataclass(frozen=True)
class Row:
    """What one use of one kernel ended in."""

    problem: str
    use: str
    ended: str
    said: str
    """First words of the error, or what is wrong with the result."""


def main() -> None:
    """Print what the uses ended in; exit with 1 where one was silently wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", type=Path, nargs="*", default=[OPERATORS])
    parser.add_argument("--fallback", action="store_true", help="files fall back to the reference")
    parser.add_argument("--limit", type=int, default=0, help="problems of each suite, at most (default: all)")
    parser.add_argument("--seconds", type=float, default=20.0, help="give a problem up whose right use takes longer (default: 20)")
    parser.add_argument("--out", type=Path, help="file that gets a row for each use")
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows: list[Row] = []
    for suite in given.suites:
        done = 0
        for item in open_suite(suite).items:
            if given.limit and done == given.limit:
                break
            found = _rows_of(item.file, fallback=given.fallback, seconds=given.seconds)
            done += bool(found)
            rows += found
    if given.out:
        given.out.write_text("".join(json.dumps(asdict(row)) + "\n" for row in rows))
    ends = Counter(row.ended for row in rows)
    print(f"{len(rows)} uses of {len({row.problem for row in rows})} kernels: " + ", ".join(f"{n} {end}" for end, n in ends.items()))
    sys.exit(bool(ends[SILENT]))


def _rows_of(file: Path, *, fallback: bool, seconds: float) -> list[Row]:
    """Use one problem's kernel wrongly in every way; nothing where the problem is not for this machine, which is said."""
    try:
        found = list(rows_of(load_problem(file), fallback=fallback, seconds=seconds))
    except Exception as error:
        print(f"{file.stem}: left out, {type(error).__name__}: {str(error)[:100]}", flush=True)
        return []
    print(f"{file.stem}: " + ", ".join(f"{n} {end}" for end, n in Counter(row.ended for row in found).items()), flush=True)
    for row in found:
        if row.ended == SILENT:
            print(f"  SILENT {row.use}: {row.said}", flush=True)
    return found


def rows_of(problem: Problem, *, fallback: bool = False, seconds: float = 20.0, source: str = "") -> Iterator[Row]:
    """Use a problem's guarded kernel, emitted here where no `source` is given, rightly, then wrongly in every way."""
    variants = small_variants(problem)
    smallest = min(variants or (problem,), key=lambda each: (each.work.matmul_flops, sum(spec.numel for spec in each.abi.inputs)))
    source = source or emitted(problem)
    source = guarded(source, contract_of(problem, variants, mixed_variants(problem)), reference=reference_text(problem) if fallback else "")
    with tempfile.TemporaryDirectory() as folder:
        make = load(source, Path(folder))
        opened = open_problem(smallest)
        right = Use("right", tuple(ast.literal_eval(smallest.abi.init)), tuple(opened.inputs(3)))
        began = time.monotonic()
        row = used(problem.name, right, make, opened.module)
        if row.ended != RIGHT:
            raise ValueError(f"its right use ended so: {row.said}")
        if time.monotonic() - began > seconds:
            raise TimeoutError("too slow in the interpreter")
        for use in misuses(right):
            if fallback and use.name.endswith("on another device"):
                # torch itself then gives what lay in memory: there is no result to compare with
                continue
            yield used(problem.name, use, make, opened.module)


def used(problem: str, use: Use, make: Callable[..., Any], reference: torch.nn.Module) -> Row:
    """Use a kernel, and the reference the same way; say what the first ended in."""
    changed = use.name.startswith("constructor")
    expected: list[torch.Tensor] | Exception
    try:
        theirs = type(reference)(*use.init) if changed else copy.deepcopy(reference)
        expected = call(theirs, use)
    except Exception as error:
        expected = error
    try:
        mine = make(*use.init)
        mine.load_state_dict(theirs.state_dict() if changed else reference.state_dict())
        got = call(mine.train(reference.training), use)
    except Exception as error:
        return Row(problem, use.name, REFUSED, f"{type(error).__name__}: {error}"[:200])
    if isinstance(expected, IndexError) and "out of bounds" in str(expected):
        return Row(problem, use.name, VALUES, str(expected)[:200])
    if isinstance(expected, Exception):
        return Row(problem, use.name, SILENT, f"the reference raises {type(expected).__name__}: {expected}"[:200])
    wrong = difference(got, expected)
    return Row(problem, use.name, SILENT if wrong else RIGHT, wrong)


def call(module: Any, use: Use) -> list[torch.Tensor]:
    """Call a module as `use` says, and list what comes out."""
    module = use.module(module)
    inputs = [value.detach().clone().requires_grad_(value.requires_grad) if _is_plain(value) else value for value in use.inputs]
    with torch.set_grad_enabled(use.gradients):
        return [leaf for leaf in _pytree.tree_leaves(module(*inputs)) if isinstance(leaf, torch.Tensor)]


def _is_plain(value: Any) -> bool:
    """Whether a copy of it is laid out as it is."""
    return isinstance(value, torch.Tensor) and value.is_floating_point() and value.is_contiguous() and value.device.type != "meta"


def difference(got: list[torch.Tensor], expected: list[torch.Tensor]) -> str:
    """Say how results differ; empty where they do not."""
    if len(got) != len(expected):
        return f"{len(got)} results, not {len(expected)}"
    for mine, theirs in zip(got, expected, strict=True):
        if mine.shape != theirs.shape or mine.dtype != theirs.dtype or mine.layout != theirs.layout:
            return f"{list(mine.shape)} of {mine.dtype}, not {list(theirs.shape)} of {theirs.dtype}"
        if mine.requires_grad != theirs.requires_grad:
            return "a result without a gradient"
        if mine.device.type == "meta" or not mine.numel():
            continue
        one, other = (value.detach().to_dense().double() for value in (mine, theirs))
        same = torch.allclose(one, other, rtol=CLOSE, atol=CLOSE, equal_nan=True)
        if not same:
            return "other values"
    return ""


if __name__ == "__main__":
    main()
