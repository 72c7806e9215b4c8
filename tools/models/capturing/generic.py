"""Calls of one kind at several shapes as one: sizes by which to trace them, and whether the trace holds at each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from tools.autocast.state import rounding_to
from tools.models.calls import filled, structure, tensors
from tools.models.capturing.problem_text import ProblemText

Sizes = dict[str, int]
"""Constants of a problem's file by name."""
FRESH = (3, 5, 7, 11, 13, 17, 19, 23)
"""Sizes to trace at: a compiler takes a size of one for a constant, and equal sizes for the same."""
CLOSE = 1e-3
"""Relative L2 distance up to which a trace gives what the module gives: other kernels may add in another order at another size."""


def generic_call(args: tuple[Any, ...], kwargs: dict[str, Any], given: Sequence[Sequence[torch.Tensor]]) -> tuple[Any, Any]:
    """Give a call like one at several shapes whose sizes above one are different where these differ; one shape alone stays as it is."""
    if len(given) == 1:
        return args, kwargs
    fresh = iter(FRESH)
    known: dict[tuple[int, ...], int] = {}
    made = []
    for values in zip(*given, strict=True):
        sizes = []
        for found in zip(*(value.shape for value in values), strict=True):
            if len(set(found)) > 1 and found not in known:
                known[found] = next(fresh, max(found) + len(known))
            sizes.append(known.get(found, found[0]))
        made.append(_resized(values[0], sizes))
    changed = filled(structure((args, kwargs)), iter(made))
    return changed[0], changed[1]


def _resized(value: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
    """Repeat or cut a tensor along each dimension: contents of the same kind."""
    for place, size in enumerate(sizes):
        if value.shape[place] != size:
            value = value.index_select(place, torch.arange(size, device=value.device) % max(1, value.shape[place]))
    return value


def shapes_of(text: ProblemText, given: Sequence[Sequence[torch.Tensor]]) -> tuple[Sizes, ...] | None:
    """Read the free sizes of a trace off each call; None where a call has other sizes than these give."""
    found = []
    for values in given:
        sizes = text.sizes_of(values)
        if any(tuple(value.shape) != shape for value, shape in zip(values, text.shapes_at(sizes), strict=True)):
            return None
        found.append(sizes)
    return tuple(found) if len({tuple(one.items()) for one in found}) == len(found) else None


def as_given(text: ProblemText, module: nn.Module, values: Sequence[torch.Tensor], result: Any, steps: int = 0) -> bool:
    """Whether a trace gives at a call's sizes, or at so many `steps`, what the module gives."""
    names: dict[str, Any] = {}
    exec(compile(text.at_steps(steps) if steps else text.source, "<problem>", "exec"), names)  # noqa: S102 - our own text, of the operators that the user's module was traced to
    state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    with torch.device(values[0].device):
        model = names["Model"]()
    own = {
        name: state[text.parameters[name]]
        for name in dict(model.named_parameters()) | dict(model.named_buffers())
        if name in text.parameters
    }
    with torch.no_grad(), rounding_to("", values[0].device.type):
        try:
            found = list(tensors(torch.func.functional_call(model, own, tuple(values))))
        except (RuntimeError, IndexError, ValueError):
            return False
    return all(map(_close, found, tensors(result)))


def _close(mine: torch.Tensor, theirs: torch.Tensor) -> bool:
    if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
        return False
    if not theirs.is_floating_point():
        return bool((mine == theirs).all())
    a, b = mine.detach().double().nan_to_num(), theirs.detach().double().nan_to_num()
    roundoff = 4 * float(torch.finfo(theirs.dtype).eps)
    return float((a - b).norm()) <= max(CLOSE, roundoff) * float(b.norm()) + 1e-30
