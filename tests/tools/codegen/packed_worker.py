"""Run emitted modules that pack their weights beside the same ones that do not, under Triton's interpreter, and change the weights.

Runs as its own process, as `interpreter_worker` does. A job names a problem and two sources: `source` packs, `plain` does not.
"""

from __future__ import annotations

import ast
import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from tests.tools.codegen.interpreter_worker import load
from tools.codegen.templates.device.inspection import tensor_leaves
from tools.problems import open_problem
from tools.records import Problem


def written_in_place(model: Any) -> None:
    """As an optimiser does."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.25).add_(0.125)


def replaced(model: Any) -> None:
    """Put another parameter into each one's place."""
    for module in model.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            setattr(module, name, torch.nn.Parameter(parameter.detach() * -0.5))


def given_other_memory(model: Any) -> None:
    """As `Module.to` does: the parameter stays, its storage is another."""
    for parameter in model.parameters():
        parameter.data = parameter.data * 2.0


def loaded(model: Any) -> None:
    """Load a state dict."""
    model.load_state_dict({name: value + 0.25 for name, value in model.state_dict().items()})


CHANGES: tuple[Callable[[Any], None], ...] = (lambda _: None, written_in_place, replaced, given_other_memory, loaded)


def judge(problem: Problem, packing: str, plain: str) -> dict[str, Any]:
    """Compare both after each change of the weights, and count how often they were packed."""
    reference = open_problem(problem)
    inputs = reference.inputs(7)
    models = []
    for source in (packing, plain):
        model = load(source).ModelNew(*ast.literal_eval(problem.abi.init))
        model.load_state_dict(reference.parameters())
        models.append(model.train(problem.abi.training))
    step, packs = models[0].pack_weights, [0]

    def counted() -> None:
        packs[0] += 1
        step()

    models[0].pack_weights = counted
    equal, counts = [], []
    with torch.no_grad():
        for change in CHANGES:
            for model in models:
                change(model)
            other = list(tensor_leaves(models[1](*(value.clone() for value in inputs))))
            for _ in range(2):
                one = list(tensor_leaves(models[0](*(value.clone() for value in inputs))))
                equal.append(all(torch.equal(mine, its) for mine, its in zip(one, other, strict=True)))
            counts.append(packs[0])
    with torch.inference_mode():
        model = load(packing).ModelNew(*ast.literal_eval(problem.abi.init))
        model.load_state_dict(models[1].state_dict())
        one, other = (list(tensor_leaves(each(*(value.clone() for value in inputs)))) for each in (model, models[1]))
        equal.append(all(torch.equal(mine, its) for mine, its in zip(one, other, strict=True)))
    state = sorted(models[0].state_dict()) == sorted(models[1].state_dict())
    return {"equal": equal, "packs": counts, "state": state}


def main() -> None:
    """Judge every job of the file named on the command line."""
    from tests.tools.codegen.quick_interpreter import install

    torch.set_num_threads(1)
    install()
    results = []
    for job in json.loads(Path(sys.argv[1]).read_text()):
        try:
            problem = Problem.model_validate_json(Path(job["problem"]).read_text())
            results.append(judge(problem, job["source"], job["plain"]))
        except Exception:
            results.append({"crash": traceback.format_exc()[-1800:]})
    Path(sys.argv[2]).write_text(json.dumps(results))


if __name__ == "__main__":
    main()
