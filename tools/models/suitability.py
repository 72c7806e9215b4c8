"""What keeps a module from being replaced, seen on the module and on one real call of it."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import nn

from tools.models.calls import tensors
from tools.problems.counting import Counter as WorkCounter
from tools.problems.seeding import seeded
from tools.records import ITEM_BYTES, Work

QUANTISED = ("torch.ao.nn.quantized", "torch.ao.nn.intrinsic", "bitsandbytes", "torchao", "auto_gptq", "awq")
"""Where classes of quantised modules come from."""
NARROW = tuple(getattr(torch, name) for name in ("int8", "uint8", "float8_e4m3fn", "float8_e5m2", "qint8", "quint8", "qint32"))
"""Dtypes in which only quantised weights are kept."""

ROUNDOFFS = 4.0
"""Relative L2 distance of two runs of the same operators in another order of sums, in roundoffs of the dtype."""


def held(module: nn.Module) -> list[torch.Tensor]:
    """List the parameters and buffers of a module."""
    return [*module.parameters(), *module.buffers()]


def shared_tensors(model: nn.Module) -> set[int]:
    """Find the parameters and buffers, by identity, that several modules of a model own."""
    owned = Counter(
        id(value) for part in model.modules() for value in (*part._parameters.values(), *part._buffers.values()) if value is not None
    )
    return {name for name, count in owned.items() if count > 1}


def static_reason(module: nn.Module, call: Any, shared: set[int]) -> str:
    """Say what about a module and what it is given speaks against it; empty for nothing."""
    own, given = held(module), list(tensors(call))
    every = [*own, *given]
    devices = sorted({str(value.device) for value in every})
    reasons = {
        _quantised(module, own): True,
        f"it works on a subclass of tensor ({', '.join(_odd(every))})": bool(_odd(every)),
        "its weights are tied to another module's": any(id(value) in shared for value in own),
        f"its tensors are on several devices ({', '.join(devices)})": len(devices) > 1,
        "its forward has been replaced already": "forward" in module.__dict__,
        "it is in training mode": module.training,
        "it is given no tensor": not given,
        f"it works on {', '.join(_foreign(every))}": bool(_foreign(every)),
    }
    return next((reason for reason, holds in reasons.items() if holds and reason), "")


def _quantised(module: nn.Module, own: list[torch.Tensor]) -> str:
    for part in module.modules():
        if type(part).__module__.startswith(QUANTISED) or hasattr(part, "_packed_params"):
            return f"it is quantised ({type(part).__name__})"
    narrow = next((value for value in own if value.is_quantized or value.dtype in NARROW), None)
    return "" if narrow is None else f"it is quantised (weights of {narrow.dtype})"


def _odd(every: list[torch.Tensor]) -> list[str]:
    return sorted({type(value).__name__ for value in every if type(value) not in (torch.Tensor, nn.Parameter, nn.Buffer)})


def _foreign(every: list[torch.Tensor]) -> list[str]:
    return sorted({str(value.dtype) for value in every} - {f"torch.{name}" for name in ITEM_BYTES})


def counted_run(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Work, str]:
    """Run a call three times; return its result, its work, and why it is no function of its inputs, or empty."""
    before, kept = _versions(module, (args, kwargs)), _attributes(module)
    with torch.no_grad(), seeded(1, _device(module, args)), WorkCounter() as counter:
        result = module(*copy.copy(args), **kwargs)
    if _versions(module, (args, kwargs)) != before:
        return result, counter.work(), "it updates a tensor in place"
    if not _holds_the_same(kept, _attributes(module)):
        return result, counter.work(), "it keeps state between calls"
    first = [value.clone() for value in tensors(result)]
    for seed in (1, 2):
        with torch.no_grad(), seeded(seed, _device(module, args)):
            again = list(tensors(module(*args, **kwargs)))
        if not repeats(first, again):
            drawn = ", ".join(dict.fromkeys(counter.random))
            return result, counter.work(), f"it draws random numbers ({drawn})" if drawn else "it keeps state between calls"
    return result, counter.work(), ""


def expert_by_expert(operators: Sequence[str]) -> list[str]:
    """List operators with what is done for each expert once: between two looks for rows, what was done between others is left out."""
    parts: list[list[str]] = [[]]
    for operator in operators:
        if operator.startswith("aten.nonzero"):
            parts.append([])
        parts[-1].append(operator)
    return [operator for part in dict.fromkeys(map(tuple, parts)) for operator in part]


def alike(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    """Whether two lists of tensors hold the same values; NaN equals NaN."""
    return len(one) == len(other) and all(map(_same, one, other))


def repeats(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    """Whether two runs gave the same; on a GPU floats may differ by a few roundoffs, as what adds by atomics does so in any order."""
    return len(one) == len(other) and all(_same(a, b) or (a.is_cuda and _near(a, b)) for a, b in zip(one, other, strict=True))


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype and bool(((one == other) | (one.isnan() & other.isnan())).all())


def _near(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype or not one.is_floating_point():
        return False
    distance = float((one.double() - other.double()).norm())
    return distance <= ROUNDOFFS * torch.finfo(one.dtype).eps * float(other.double().norm())


def _device(module: nn.Module, args: Any) -> str:
    return next((str(value.device) for value in (*held(module), *tensors(args))), "cpu")


def _attributes(module: nn.Module) -> dict[tuple[str, str], torch.Tensor]:
    """List the tensors that a module and its parts hold, registered or not, by where."""
    found = ((path, {**vars(part), **part._buffers}) for path, part in module.named_modules())
    return {(path, name): value for path, held in found for name, value in held.items() if isinstance(value, torch.Tensor)}


def _holds_the_same(before: dict[tuple[str, str], torch.Tensor], after: dict[tuple[str, str], torch.Tensor]) -> bool:
    """Whether a call put no other tensor in the place of one, as what keeps its state in an attribute does."""
    return before.keys() == after.keys() and all(value is after[name] for name, value in before.items())


def _versions(module: nn.Module, call: Any) -> list[int]:
    return [value._version for value in _watched(module, call)]


def _watched(module: nn.Module, call: Any) -> Iterator[torch.Tensor]:
    yield from held(module)
    yield from tensors(call)
