"""Real runs of a reference where they cost little: whether it is deterministic, whether its outputs follow its inputs."""

from __future__ import annotations

import warnings
from typing import Any, NoReturn

import torch
from torch.utils._pytree import tree_leaves

from tools.complex_pairs import in_parts, is_inexact
from tools.errors import UserError
from tools.float8 import widened
from tools.problems.analysis import clones
from tools.problems.opening import Reference, open_problem
from tools.problems.seeding import seeded
from tools.records import Problem, ProblemForm

MOST_NAMED = 3
"""Attributes that a message names."""

KEPT = (torch.Tensor, int, float, str)
"""Types of what is compared of them."""

NOT_ONE = "{}: the reference is not deterministic: two calls on equal inputs give different outputs; {}."


class RandomReferenceError(UserError):
    """The reference's outputs are not a function of its inputs: no candidate can be judged by it."""


def outputs_follow_inputs(problem: Problem) -> bool:
    """Run twice with different inputs; False where every output is the same although an input differs.

    A variant like softmax over one column says nothing about a candidate: any constant would pass.
    """
    reference = open_problem(problem)
    first, second = reference.inputs(seed=1), reference.inputs(seed=2)
    if same(first, second):
        return True
    return not same(call(reference, first, seed=1), call(reference, second, seed=1))


def inputs_differ(problem: Problem) -> bool:
    """Whether two seeds give different inputs."""
    reference = open_problem(problem)
    return not same(reference.inputs(seed=1), reference.inputs(seed=2))


def require_deterministic(problem: Problem, title: str, random: tuple[str, ...]) -> list[torch.Tensor]:
    """Run twice on equal inputs and return the outputs; raise UserError where they differ. `random` names suspects for the message."""
    reference = open_problem(problem)
    inputs = reference.inputs(seed=1)
    outputs = call(reference, inputs, seed=1)
    if not same(outputs, call(reference, inputs, seed=2)):
        if random:
            refuse_random(title, random)
        refuse_state(title, changed_state(problem), lasting=changed_state(problem, evaluating=True))
    return outputs


def changed_state(problem: Problem, *, evaluating: bool = False) -> tuple[str, ...]:
    """Name what a call changes of what the module holds: buffers, parameters, and attributes of tensors and numbers."""
    reference = open_problem(problem)
    if evaluating and problem.form is not ProblemForm.EXPORTED:
        reference.module.eval()
    before = _state(reference.module)
    call(reference, reference.inputs(seed=1), seed=1)
    after = _state(reference.module)
    return tuple(name for name in {**before, **after} if not same(before.get(name, []), after.get(name, [])))


def _state(module: torch.nn.Module) -> dict[str, list[Any]]:
    """List the tensors and the numbers in each attribute of a module and of its parts, by its path; tensors are copied."""
    found: dict[str, list[Any]] = {}
    for path, part in module.named_modules():
        own = {name: value for name, value in vars(part).items() if not name.startswith("_")}
        for name, value in {**own, **part._parameters, **part._buffers}.items():
            found[f"{path}.{name}" if path else name] = clones([each for each in tree_leaves(value) if isinstance(each, KEPT)])
    return found


def say_nothing(outputs: list[torch.Tensor]) -> bool:
    """Whether no output has a single finite value, so that nothing could be compared with it."""
    return all(is_inexact(output) and not output.isfinite().any() for output in outputs)


def undefined_shares(problem: Problem) -> dict[str, float]:
    """Run once; the share of NaN in each output that has any, by the output's name."""
    reference = open_problem(problem)
    outputs = call(reference, reference.inputs(seed=1), seed=1)
    shares = {f"output{index}": float(output.isnan().float().mean()) for index, output in enumerate(outputs) if is_inexact(output)}
    return {name: share for name, share in shares.items() if share}


def refuse_random(title: str, random: tuple[str, ...]) -> NoReturn:
    """Raise the error for a reference that draws random numbers."""
    why = f"it draws random numbers ({', '.join(dict.fromkeys(random))})"
    raise RandomReferenceError(
        NOT_ONE.format(title, why), "Remove that, or end the constructor with self.eval() where only training is random (dropout)."
    )


def refuse_state(title: str, changed: tuple[str, ...], lasting: tuple[str, ...]) -> NoReturn:
    """Raise the error for a reference whose calls change what the next one finds: `changed`, and `lasting` where it is not in training."""
    named = [*changed[:MOST_NAMED], *([f"{len(changed) - MOST_NAMED} more"] if len(changed) > MOST_NAMED else [])]
    where = f", in {' and '.join(filter(None, (', '.join(named[:-1]), named[-1])))}" if named else ""
    if len(changed) > 1:
        mend = "Keep these in buffers, by `self.register_buffer`, or take them as arguments of forward"
    else:
        kept = changed[0] if changed else "what it remembers"
        mend = f"Keep {kept} in a buffer, by `self.register_buffer`, or take it as an argument of forward"
    mend += ", or end the constructor with self.eval(): only training changes it." if changed and not lasting else "."
    raise RandomReferenceError(NOT_ONE.format(title, f"it keeps state between calls{where}"), mend)


def call(reference: Reference, inputs: list[Any], seed: int) -> list[torch.Tensor]:
    """Call the reference on copies of `inputs`, with its own random numbers from `seed`."""
    with warnings.catch_warnings(), seeded(seed), torch.no_grad(), reference.blueprint.blaming("calling the reference"):
        warnings.simplefilter("ignore")
        return reference.outputs(clones(inputs))


def same(left: list[Any], right: list[Any]) -> bool:
    """Whether two lists of tensors and scalars hold the same values; NaN equals NaN."""
    return len(left) == len(right) and all(_equal(a, b) for a, b in zip(left, right, strict=True))


def _equal(left: Any, right: Any) -> bool:
    if not isinstance(left, torch.Tensor) or not isinstance(right, torch.Tensor):
        return type(left) is type(right) and bool(left == right)
    if left.shape != right.shape:
        return False
    if not is_inexact(left):
        return torch.equal(left, right)
    return torch.allclose(in_parts(widened(left)), in_parts(widened(right)), rtol=0.0, atol=0.0, equal_nan=True)
