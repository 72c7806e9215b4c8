"""Run emitted sources under Triton's interpreter and compare them with their references in float64.

Runs as its own process: `TRITON_INTERPRET=1` is read when kernels are defined. Reads a JSON list of jobs (`problem`, `source`
as paths) and writes, for each, the worst error relative to what the reference's own precision allows, or what went wrong.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from tools.codegen.templates.device.inspection import tensor_leaves
from tools.float8 import is_float8, widened
from tools.problems import open_problem
from tools.records import Problem
from tools.returned import returned

FLOOR = {torch.float16: 2e-3, torch.bfloat16: 2e-2, torch.float32: 2e-6, torch.float64: 1e-12}
"""Relative L2 error that is always allowed: a few units in the last place."""


def load(path: str) -> ModuleType:
    """Import an emitted file."""
    name = Path(path).stem
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def to_double(value: Any) -> Any:
    """Convert floating tensors to float64; references convert those of eight bits themselves."""
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() and value.element_size() > 1 else value


def copy(value: Any) -> Any:
    """Clone tensors, so that no side sees the other's writes."""
    return value.clone() if isinstance(value, torch.Tensor) else value


def compare(got: torch.Tensor, oracle: torch.Tensor, reference: torch.Tensor) -> float:
    """Return the error over its limit; above one is wrong. What has eight bits is compared by its numbers."""
    if is_float8(got.dtype):
        return 0.0 if got.dtype == reference.dtype and torch.equal(widened(got), widened(reference)) else float("inf")
    if got.shape != reference.shape or got.dtype != reference.dtype:
        return float("inf")
    if not got.is_floating_point():
        return 0.0 if torch.equal(got, reference) else float("inf")
    finite = torch.isfinite(oracle)
    if not torch.equal(torch.isfinite(got), finite) or not torch.equal(got.isnan(), oracle.isnan()):
        return float("inf")
    scale = oracle[finite].norm().item() or 1.0
    error = (got.double() - oracle)[finite].norm().item() / scale
    own = (reference.double() - oracle)[finite].norm().item() / scale
    return error / max(4 * own, FLOOR[got.dtype])


def judge(problem: Problem, source: str) -> float:
    """Run one emitted source at one problem's sizes."""
    reference = open_problem(problem)
    init = __import__("ast").literal_eval(problem.abi.init)
    candidate = load(source).ModelNew(*init)
    candidate.load_state_dict(reference.parameters())
    candidate.train(problem.abi.training)
    inputs = reference.inputs(7)
    oracle_module = open_problem(problem).module.double()
    with torch.no_grad():
        given, also, exact = ([copy(value) for value in inputs] for _ in range(3))
        exact = [to_double(value) for value in exact]
        result = candidate(*given)
        assert returned(result).structure == problem.abi.returns
        # what a call leaves in its arguments is a result too
        got = [*tensor_leaves(result), *tensor_leaves(given)]
        own = [*tensor_leaves(reference.module(*also)), *tensor_leaves(also)]
        oracle = [*tensor_leaves(oracle_module(*exact)), *tensor_leaves(exact)]
        # what a call leaves in the buffers is a result too
        for results, module in ((got, candidate), (own, reference.module), (oracle, oracle_module)):
            results += [buffer for _, buffer in sorted(module.named_buffers())]
    return max(compare(g, o.to(torch.float64) if o.is_floating_point() else o, r) for g, o, r in zip(got, oracle, own, strict=True))


def main() -> None:
    """Judge every job of the file named on the command line."""
    from tests.tools.codegen.quick_interpreter import install
    from tools.evaluation.untrusted.interpreter import builder

    torch.set_num_threads(1)
    builder.install()
    install()
    results = []
    for job in json.loads(Path(sys.argv[1]).read_text()):
        try:
            results.append({"error": judge(Problem.model_validate_json(Path(job["problem"]).read_text()), job["source"])})
        except Exception:
            results.append({"crash": traceback.format_exc()[-1800:]})
    Path(sys.argv[2]).write_text(json.dumps(results))


if __name__ == "__main__":
    main()
