"""Run emitted sources under Triton's interpreter and hold their errors against the exact policy's limits, as the evaluator does.

Runs as its own process, like `interpreter_worker`. Writes for each job the whole's and the worst row's error over their limits; what
the inputs' own digits leave open is not allowed for, so the limits are the strictest that the policy gives.
"""

from __future__ import annotations

import ast
import copy
import json
import sys
import traceback
from pathlib import Path

import torch
from interpreter_worker import load

from tools.evaluation.trusted.numerics import EXACT, distance, limits
from tools.policies import load_policy
from tools.problems import open_problem
from tools.records import Problem


def judge(problem: Problem, source: str) -> float:
    """Return the larger of both errors over their limits; above one is wrong, infinite where infinities or NaNs differ."""
    reference = open_problem(problem)
    candidate = load(source).ModelNew(*ast.literal_eval(problem.abi.init))
    candidate.load_state_dict(reference.module.state_dict())
    inputs = reference.inputs(7)
    with torch.no_grad():
        got, own = candidate(*inputs), reference.module(*inputs)
        oracle = copy.deepcopy(reference.module).double()(*[value.double() for value in inputs])
    found, allowed = distance(got, oracle, own), distance(own, oracle, own)
    limit = limits(problem.abi.outputs[0], load_policy("exact"), allowed, EXACT)
    return max(found.relative_l2 / limit.relative_l2, found.worst_row / limit.worst_row)


def main() -> None:
    """Judge every job of the file named on the command line."""
    from tests.tools.codegen.quick_interpreter import install

    torch.set_num_threads(1)
    install()
    results = []
    for job in json.loads(Path(sys.argv[1]).read_text()):
        try:
            results.append({"share": judge(Problem.model_validate_json(Path(job["problem"]).read_text()), job["source"])})
        except Exception:
            results.append({"crash": traceback.format_exc()[-1800:]})
    Path(sys.argv[2]).write_text(json.dumps(results))


if __name__ == "__main__":
    main()
