"""Makes the inputs of every call: trusted, knows the seeds and the reference, ends before any candidate starts."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from tools.complex_pairs import changed
from tools.evaluation.trusted.device_store import tensors_of
from tools.evaluation.trusted.distributions import transform
from tools.evaluation.trusted.reference import DeclaredReference
from tools.evaluation.wire import patching
from tools.evaluation.wire.calls import CallPlan, CallSpec
from tools.evaluation.wire.distributions import AS_MADE, NON_FINITE
from tools.evaluation.wire.jobs.inputs import InputsAnswer, InputsJob
from tools.evaluation.wire.phase import Phase
from tools.evaluation.wire.tensor_store import TensorStore
from tools.records import ABI, Problem, ScalarSpec

if TYPE_CHECKING:
    import torch


CHANGED = "as made, a few elements changed"
"""What a note calls the inputs of a call that follows another."""


def make(phase: Phase) -> None:
    """Write parameters and inputs of every plan into its store."""
    import torch

    job = InputsJob.model_validate_json(phase.job)
    torch.set_num_threads(job.threads)
    usable = []
    notes: dict[str, None] = {}
    for index, call_plan in enumerate(job.call_plans):
        problem = Problem.model_validate_json(call_plan.problem)
        store = tensors_of(phase, index, call_plan, job.device_stores, job.device)
        reference = DeclaredReference(problem, job.device)
        _write_parameters(reference, call_plan, problem, store)
        problems = [_write_inputs(reference, problem.abi, store, number, call) for number, call in enumerate(call_plan.calls)]
        usable.append(tuple(not problem for problem in problems))
        notes |= {
            f"Inputs “{CHANGED if call.follows else call.distribution}” were left out: {problem}.": None
            for call, problem in zip(call_plan.calls, problems, strict=True)
            if problem
        }
        store.close()
    phase.answer(InputsAnswer(usable=tuple(usable), notes=tuple(notes)).model_dump_json().encode())


def _write_parameters(reference: DeclaredReference, call_plan: CallPlan, problem: Problem, store: TensorStore) -> None:
    from tools.problems.seeding import seed_torch

    values = reference.parameters()
    if call_plan.shake is not None:
        seed_torch(call_plan.shake)
        values = {name: shaken(value) for name, value in values.items()}
        reference.load(values)
    for spec, target in zip(problem.abi.parameters, store.parameter_tensors(), strict=True):
        target.copy_(values[spec.name])


def shaken(value: torch.Tensor) -> torch.Tensor:
    """Move a float tensor or complex part whose elements are all equal: what is only a default must not be built into a kernel."""
    made: torch.Tensor = changed(value, _shaken)
    return made


def _shaken(value: torch.Tensor) -> torch.Tensor:
    import torch

    if value.numel() == 0 or not bool((value == value.flatten()[0]).all()):
        return value
    return value + (torch.rand(value.shape) * 0.45 + 0.05).to(value.dtype).to(value.device)


def _write_inputs(reference: DeclaredReference, abi: ABI, store: TensorStore, number: int, call: CallSpec) -> str:
    """Write the inputs of a call; say why they are of no use, or nothing."""
    import torch

    if call.follows:
        return _follow(reference, abi, store, number, call)
    made = made_inputs(reference, call)
    tensors = [value for value in made if isinstance(value, torch.Tensor)]
    for target, value in zip(store.input_tensors(number), tensors, strict=True):
        target.copy_(value)
    return unusable(reference, made, call.distribution)


def _follow(reference: DeclaredReference, abi: ABI, store: TensorStore, number: int, call: CallSpec) -> str:
    """Write the inputs of the call before once more, a few elements changed."""
    made = store.input_tensors(number)
    for target, before in zip(made, store.input_tensors(number - 1), strict=True):
        target.copy_(before)
    # nothing is kept secret by it that the system's generator has not drawn
    patching.alter_tile(made, random.Random(call.seed))  # noqa: S311
    tensors = iter([value.to(reference.device, copy=True) for value in made])
    arguments = [a.value if isinstance(a, ScalarSpec) else next(tensors) for a in abi.arguments]
    return unusable(reference, arguments, CHANGED)


def made_inputs(reference: DeclaredReference, call: CallSpec) -> list[Any]:
    """Make the arguments of a call."""
    from tools.problems.seeding import seed_torch

    made: list[Any] = reference.inputs(call.seed)
    seed_torch(call.seed ^ 0x5DEECE66D)
    return transform(call.distribution, made)


def unusable(reference: DeclaredReference, arguments: list[Any], distribution: str) -> str:
    """Say why inputs of a distribution prove nothing; empty where they do."""
    import torch

    if distribution == AS_MADE:
        return ""
    from tools.evaluation.trusted.free_order import shown_in
    from tools.evaluation.trusted.ties import Ties

    try:
        with Ties() as ties:
            outputs = reference.outputs(arguments)
    except (RuntimeError, ValueError, IndexError, ArithmeticError) as error:
        return f"the reference raises {type(error).__name__} on them"
    if distribution != NON_FINITE and not all(bool(torch.isfinite(output).all()) for output in outputs if output.is_floating_point()):
        return "the reference answers with NaN or infinity"
    if ties.met and not all(output.is_floating_point() for output in outputs):
        # elements that became those of others are equal to the last bit, and are judged where outputs show in which order they stand
        if distribution == CHANGED and not ties.inexact and all(shown_in(outputs, *one) is not None for one in ties.found):
            return ""
        return "the reference puts equal elements in order and answers with whole numbers"
    return ""
