"""From what a user has (a file, a module) to a problem record."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.errors import UserError
from tools.native import in_turn
from tools.problems.archive_sizes import are_chosen
from tools.problems.constants import takes_views, weights_change
from tools.problems.dynamic import Dynamic
from tools.problems.opening import blueprint_of
from tools.problems.shapes import declared_shapes
from tools.problems.source import Recognised, parse, read_source, recognise
from tools.problems.variants import describe_sizes, first_variant
from tools.records import ABI, PrecisionPolicy, Problem, ProblemForm

if TYPE_CHECKING:
    from torch import nn

_CHEAP_ELEMENTS = 20_000_000
_CHEAP_FLOPS = 10_000_000_000
"""Up to these a reference without small variants is run at full size to see whether it is deterministic: about a second."""

_DEFAULT_POLICY = PrecisionPolicy()


@in_turn
def load_problem(path: Path, policy: PrecisionPolicy = _DEFAULT_POLICY, entry: str | None = None) -> Problem:
    """Read a problem from a file in KernelBench's form or in function form.

    `entry` names the reference where a file defines several functions. The file's code is run, the reference once without
    contents (or for real where that is impossible) and twice at small sizes; whatever is wrong with it raises UserError.
    """
    source, recognised = recognise_file(path, entry)
    stem = _name(path.stem)
    name = stem if entry is None or entry in ("Model", stem) else _name(entry)
    return _problem(name, path.name, recognised.form, recognised.entry, source, policy)


def recognise_file(path: Path, entry: str | None = None) -> tuple[str, Recognised]:
    """Read a file and tell what its reference is, without running it; what holds none raises UserError."""
    source = read_source(path)
    return source, recognise(parse(source, path.name), path.name, _name(path.stem), entry)


@in_turn
def problem_from_module(
    given: nn.Module | Callable[..., Any],
    example_inputs: Any,
    name: str | None = None,
    policy: PrecisionPolicy = _DEFAULT_POLICY,
    *,
    dynamic: Dynamic = None,
) -> Problem:
    """Make a problem of a module or function given in Python, through torch.export.

    `example_inputs` is an example of one call: a tensor, a tuple of arguments, or a mapping of keyword arguments. Later calls draw
    contents of the same shapes, but for sizes that are `dynamic`, from a normal distribution of the same mean and spread where an
    example takes both signs, else uniformly over its range.
    """
    from tools.problems.archive import pack
    from tools.problems.calls import as_module, on_cpu, positional

    module, title = as_module(given)
    module, arguments = on_cpu(module, positional(module, example_inputs, title))
    source = pack(module, arguments, title, dynamic)
    problem = _problem(_name(name or title), title, ProblemForm.EXPORTED, title, source, policy)
    # an exported graph no longer knows its mode, it has it built in
    return problem.model_copy(update={"abi": problem.abi.model_copy(update={"training": module.training})})


@in_turn
def reload_problem(problem: Problem) -> Problem:
    """Read ABI and work anew out of a problem's own source, which is run for it; whatever is wrong with it raises UserError."""
    fresh = _problem(problem.name, problem.name, problem.form, problem.entry, problem.source, problem.policy)
    if any(spec.dynamic for spec in problem.abi.parameters):
        fresh = with_changing_weights(fresh)
    if problem.form is not ProblemForm.EXPORTED:
        return fresh
    return fresh.model_copy(update={"abi": fresh.abi.model_copy(update={"training": problem.abi.training})})


@in_turn
def problem_notes(problem: Problem) -> tuple[str, ...]:
    """Say what a user should know about a problem that is no error, one sentence each; runs it at a small size."""
    from tools.problems.trial import inputs_differ, outputs_follow_inputs, undefined_shares

    notes: list[str] = []
    small = first_variant(problem) or (problem if _is_cheap(problem) else None)
    if small is not None and problem.abi.inputs and not inputs_differ(small):
        notes.append("Its inputs are the same under every seed, so a candidate that ignores them cannot be told from one that computes.")
    elif small is not None and not outputs_follow_inputs(small):
        notes.append(f"Its outputs do not depend on its inputs ({describe_sizes(small)}), so any constant of that value would pass.")
    if small is not None:
        sizes = describe_sizes(small)
        for output, share in undefined_shares(small).items():
            notes.append(f"{output} of the reference is NaN in {share:.0%} of its elements ({sizes}), where a kernel must be too.")
    if small is None or small is problem:
        mend = "" if problem.form is ProblemForm.EXPORTED else " SMALL_SIZES in the file names some (docs/evaluation.md)."
        notes.append(f"It has no small variants: correctness is checked at its full size only.{mend}")
    if problem.abi.training and any("batch_norm" in operator for operator in problem.work.operators):
        notes.append("Its module is in training mode, so batch norm uses the statistics of the batch.")
    return tuple(notes)


def with_changing_weights(problem: Problem) -> Problem:
    """Say of a problem that its parameters change from call to call, so that nothing made of them may be kept."""
    shapes = tuple(shape.model_copy(update={"abi": _changing(shape.abi)}) for shape in problem.shapes)
    return problem.model_copy(update={"abi": _changing(problem.abi), "shapes": shapes})


def _changing(abi: ABI) -> ABI:
    return abi.model_copy(update={"parameters": tuple(spec.model_copy(update={"dynamic": True}) for spec in abi.parameters)})


def _problem(name: str, title: str, form: ProblemForm, entry: str, source: str, policy: PrecisionPolicy) -> Problem:
    from tools.problems.analysis import analyse
    from tools.problems.trial import refuse_random, require_deterministic, say_nothing

    facts = analyse(blueprint_of(form, entry, source, {}, title))
    problem = Problem(name=name, form=form, entry=entry, source=source, abi=facts.abi, work=facts.work, policy=policy)
    # read here, so that a mistake in it is found at once
    takes_views(problem)
    problem = problem.model_copy(update={"shapes": declared_shapes(problem)})
    if weights_change(problem):
        problem = with_changing_weights(problem)
    small = first_variant(problem)
    if small is None and form is ProblemForm.EXPORTED and are_chosen(source):
        what = f"{title} runs at no other size than that of the example."
        raise UserError(what, "Leave `dynamic` out, or have its code take sizes from shapes.")
    if small is not None or _is_cheap(problem):
        outputs = require_deterministic(small or problem, title, facts.random)
        if say_nothing(outputs) and (small is None or not _is_cheap(problem) or say_nothing(require_deterministic(problem, title, ()))):
            what = f"{title}: every output of the reference is NaN or infinite at all of its elements, so that nothing can be compared."
            raise UserError(what, "Mend the reference, or make inputs for which it is defined.")
    elif facts.random:
        # too large to run twice here: what draws random numbers is taken to show in the outputs
        refuse_random(title, facts.random)
    return problem


def _is_cheap(problem: Problem) -> bool:
    abi = problem.abi
    elements = sum(spec.numel for spec in (*abi.inputs, *abi.parameters, *abi.outputs))
    return elements <= _CHEAP_ELEMENTS and problem.work.matmul_flops <= _CHEAP_FLOPS


def _name(text: str) -> str:
    """Turn a file, class or function name into `[a-z0-9_]`."""
    name = re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text).lower()).strip("_")
    if not name:
        raise UserError(f"No problem name can be made of {text!r}.", "Use letters and digits in the file's name.")
    return name
