"""One run of a reference: its ABI and its work, read from tensors without contents wherever that is possible."""

from __future__ import annotations

import inspect
import logging
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedFakeTensorException,
    UnsupportedOperatorException,
)

from tools.errors import UserError
from tools.native import fake_tensors
from tools.problems.blueprint import Blueprint, FunctionModule
from tools.problems.counting import Counter
from tools.problems.drawn import Drawing, Reading
from tools.problems.even_rows import EvenRows
from tools.problems.patience import EndlessError
from tools.problems.writes import changed_of, module_state, sharing, versions, written_since
from tools.records import ABI, ITEM_BYTES, Scalar, ScalarSpec, TensorSpec, Work
from tools.returned import LONGEST, Returned, instead_of, returned

_FAKE_ONLY = (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedFakeTensorException,
    UnsupportedOperatorException,
    NotImplementedError,
)
"""What only a run without contents can raise: such a reference must really run once."""

_SURE_BYTES = 1 << 24
"""Inputs up to this size are cheap to run for real, to make sure that an error is the user's and not the fake run's."""


@dataclass(frozen=True)
class Facts:
    """What one run tells."""

    abi: ABI
    work: Work
    random: tuple[str, ...]
    """Operators that draw random numbers, in order."""
    shapes: tuple[tuple[tuple[int, ...], ...], ...]
    """Of what each operator of the work reads and makes."""
    real: bool
    """Whether the reference really ran: it cannot without contents."""


def analyse(blueprint: Blueprint, *, confirm: bool = True) -> Facts:
    """Read the ABI and count the work; what the user's code does wrong raises UserError.

    With `confirm` an error met without contents is met again in a real run, where that is cheap, before it is reported.
    """
    with quiet():
        try:
            return _run(blueprint, fake_tensors())
        except UserError as error:
            cause = error.__cause__
            if (
                cause is None
                or isinstance(cause, EndlessError)
                or not (needs_contents(cause) or (confirm and _input_bytes(blueprint) <= _SURE_BYTES))
            ):
                raise
            if isinstance(cause, DynamicOutputShapeException) and (spread := _spread(blueprint)) is not None:
                return spread
            facts = _run(blueprint, nullcontext())
    if isinstance(cause, DynamicOutputShapeException):
        _refuse_dynamic_outputs(blueprint, facts.abi)
    return facts


def flat_outputs(result: Any, title: str, *, may_be_none: bool = False) -> list[torch.Tensor]:
    """List the outputs in order; UserError where there are none, unless there `may_be_none`, or something else among them."""
    return _taken_apart(result, title, may_be_none=may_be_none).tensors


def _taken_apart(result: Any, title: str, *, may_be_none: bool = False) -> Returned:
    found = returned(result)
    mend = instead_of(found.kind)
    if found.where:
        raise UserError(f"{title}: result{found.where} of the reference is {found.strange}, not a tensor.", mend)
    if found.strange or (result is None and not may_be_none):
        raise UserError(f"{title}: the reference returns {type(result).__name__}, not tensors.", mend)
    if not found.tensors and not may_be_none:
        raise UserError(f"{title}: the reference returns no output.", mend)
    if len(found.structure) > LONGEST:
        raise UserError(f"{title}: what the reference returns takes {len(found.structure)} characters to describe.", "Return fewer parts.")
    return found


def clones(inputs: list[torch.Tensor | Scalar]) -> list[torch.Tensor | Scalar]:
    """Copy the tensors of a call: a reference may write to its arguments."""
    return [value.clone() if isinstance(value, torch.Tensor) else value for value in inputs]


def _run(blueprint: Blueprint, mode: Any, picking: AbstractContextManager[Any] | None = None) -> Facts:
    """Make inputs and module, and call it; what it picks by a condition is `picking`'s to give, what inputs are made of is not."""
    with mode:
        init = blueprint.init
        inputs = blueprint.inputs(seed=0)
        with Drawing() as drawing:
            module = blueprint.build()
        kept = drawing.kept(module)
        # read before the call: batch norm writes to its buffers
        parameters = tuple(_tensor(name, value, blueprint.title, dynamic=False) for name, value in module.state_dict().items())
        reading = Reading(kept, blueprint.title) if kept else nullcontext()
        with blueprint.blaming("calling the reference"), torch.no_grad(), reading, picking or nullcontext(), Counter() as counter:
            before, state = versions(inputs), module_state(module)
            result = module(*inputs)
        names = _argument_names(module, len(inputs))
        written = written_since(dict(zip(names, inputs, strict=True)), before)
        updated = changed_of(module, state)
        made = _taken_apart(result, blueprint.title, may_be_none=bool(written or updated))
    abi = ABI(
        arguments=tuple(
            _argument(name, value, blueprint.title, optional=place in blueprint.optional)
            for place, (name, value) in enumerate(zip(names, inputs, strict=True))
        ),
        parameters=parameters,
        outputs=(
            *(_output(index, value, blueprint.title) for index, value in enumerate(made.tensors)),
            *(_tensor(f"written_{name}", value, blueprint.title) for name, value in (*written.items(), *updated.items())),
        ),
        written=tuple(written),
        aliases=sharing(made.tensors, list(written.values())),
        updated=tuple(updated),
        returns=made.structure,
        init=init,
        training=module.training,
    )
    return Facts(abi, counter.work(), tuple(counter.random), tuple(counter.shapes), isinstance(mode, nullcontext))


def needs_contents(cause: BaseException | None) -> bool:
    """Whether only a run without contents fails so; some of torch's refusals have no type of their own."""
    return isinstance(cause, _FAKE_ONLY) or any(word in str(cause) for word in ("FakeTensor", "tensor subclasses", "meta tensor"))


def _spread(blueprint: Blueprint) -> Facts | None:
    """Run without contents, picked rows spread evenly; None where it fails so, or where a result has as many rows as were picked."""
    try:
        every = EvenRows(1)
        all_picked = _run(blueprint, fake_tensors(), every)
        facts = _run(blueprint, fake_tensors(), EvenRows(max(2, every.picked)))
    except UserError:
        return None
    return facts if facts.abi.outputs == all_picked.abi.outputs else None


def _argument(name: str, value: torch.Tensor | Scalar, title: str, *, optional: bool) -> TensorSpec | ScalarSpec:
    return _tensor(name, value, title) if isinstance(value, torch.Tensor) else ScalarSpec(name=name, value=value, optional=optional)


def _output(index: int, value: torch.Tensor, title: str) -> TensorSpec:
    spec = _tensor(f"output{index}", value, title)
    if not spec.numel:
        raise UserError(f"{title}: output {index} of the reference is empty, of shape {list(spec.shape)}.", "Choose larger sizes.")
    return spec


def _tensor(name: str, value: torch.Tensor, title: str, *, dynamic: bool = True) -> TensorSpec:
    dtype = str(value.dtype).removeprefix("torch.")
    if dtype not in ITEM_BYTES:
        raise UserError(f"{title}: {name} has the dtype {dtype}.", f"Use one of: {', '.join(ITEM_BYTES)}.")
    return TensorSpec(name=name, shape=tuple(int(size) for size in value.shape), dtype=dtype, dynamic=dynamic)


def _argument_names(module: nn.Module, count: int) -> list[str]:
    """Names of the positional parameters; those that a `*args` swallows are called by its name and their number."""
    target = module.function if isinstance(module, FunctionModule) else module.forward
    names: list[str] = []
    for name, parameter in inspect.signature(target).parameters.items():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            names += [f"{name}{index}" for index in range(count - len(names))]
        else:
            names.append(name)
    return (names + [f"argument{index}" for index in range(len(names), count)])[:count]


def _input_bytes(blueprint: Blueprint) -> int:
    """Bytes of the inputs, made without contents; 0 where even that fails, so that a real run shows why."""
    try:
        with fake_tensors():
            return sum(value.nbytes for value in blueprint.inputs(seed=0) if isinstance(value, torch.Tensor))
    except UserError:
        return 0


def _refuse_dynamic_outputs(blueprint: Blueprint, abi: ABI) -> None:
    """Compare the output shapes of other seeds with those of seed 0."""
    for seed in (1, 2):
        with quiet(), torch.no_grad(), blueprint.blaming("calling the reference"):
            outputs = flat_outputs(blueprint.build()(*blueprint.inputs(seed)), blueprint.title, may_be_none=not abi.returned)
        shapes = [tuple(output.shape) for output in outputs]
        if shapes != [spec.shape for spec in abi.returned]:
            what = f"{blueprint.title}: the shape of an output depends on the contents of the inputs ({shapes} with another seed)."
            raise UserError(what, "Return tensors of a fixed shape, e.g. a mask in place of the selected elements.")


@contextmanager
def quiet() -> Iterator[None]:
    """The user's own code may warn, and torch logs a trace for every misfit of shapes; trial runs must not repeat them."""
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    # a level would be worked out anew by every logger of the process
    before, logger.disabled = logger.disabled, True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.disabled = before
