"""Sees whether a call loops over time, and along which dimensions of what it is given: runs it shorter, and counts its operators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch import nn

from tools.models.calls import UnsupportedCallError, filled, structure, tensors
from tools.models.forward.rolling import longest_period
from tools.models.forward.steps import CUT, Cut, Place, Sized
from tools.problems.counting import Counter

FEWEST = 12
"""Steps from which on a loop is cut."""
MOST_WRITTEN = 1200
"""Operators of a call that is traced step by step, where no shorter one tells the same: an operator takes about 10 ms."""
MOST_ALIKE = 4
"""Loops that follow one another and do the same, as those of layers do."""
MOST_TRIED = 6
"""Ways of making a call shorter that are tried."""


@dataclass(frozen=True)
class Looped:
    """A call with a loop over time."""

    once: int
    """Its operators, with a loop as one."""
    cut: Cut | None = None
    """How it is made shorter; None where no way is known."""


def looped(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], operators: Sequence[str]) -> Looped | None:
    """Look at a call that runs these operators; None where it has no loop over time, as far as one can see."""
    repeated = list(_repeated(operators))
    leaves = list(tensors((args, kwargs)))
    ways = dict.fromkeys(cut for _, steps in repeated for cut in _cuts(leaves, steps))
    for cut in islice(ways, MOST_TRIED):
        once = _once(module, structure((args, kwargs)), leaves, cut, len(operators))
        if once:
            return Looped(once, cut)
    # a stack of layers has modules for each of its steps
    modules = sum(1 for _ in module.modules())
    saved = sum(length - 1 for length, steps in repeated if steps > modules)
    return Looped(len(operators) - saved) if saved and len(operators) <= MOST_WRITTEN else None


def _repeated(tokens: Sequence[str]) -> Iterator[tuple[int, int]]:
    """List how many operators each repeated part has, and how often it repeats, the longest first."""
    period = longest_period(tokens)
    if period is None:
        return
    yield period.length, period.length // period.period
    yield from _repeated(tokens[: period.first])
    yield from _repeated(tokens[period.first + period.length :])


def _cuts(leaves: Sequence[torch.Tensor], steps: int) -> Iterator[Cut]:
    """List ways of making a call shorter whose loop has about so many steps: the same dimension of all tensors, then any."""
    sizes = [[(Place(leaf, dim), size) for dim, size in enumerate(value.shape)] for leaf, value in enumerate(leaves)]
    every = [pair for pairs in sizes for pair in pairs]
    for size in sorted({size for _, size in every}):
        near = any(steps // loops - 1 <= size <= steps // loops + 2 for loops in range(1, MOST_ALIKE + 1))
        if (size if near else steps) < FEWEST or not (near or size % steps == 0):
            continue
        many = (size, Sized(1, 0)) if near else (steps, Sized(size // steps, 0))
        alike = [place for place, found in every if found == size]
        for dim in sorted({place.dim for place in alike}):
            yield Cut(many[0], tuple(place for place in alike if place.dim == dim), many[1])
        yield Cut(many[0], tuple(alike), many[1])


def _once(module: nn.Module, shape: Any, leaves: Sequence[torch.Tensor], cut: Cut, whole: int) -> int:
    """Count a call's operators with its loop as one, where they grow with the steps; 0 where they do not."""
    counts = []
    for short in cut.cuts(leaves):
        args, kwargs = filled(shape, iter(short))
        try:
            with torch.no_grad(), Counter() as counter:
                module(*args, **kwargs)
        except (RuntimeError, IndexError, ValueError, AssertionError, UnsupportedCallError):
            return 0
        counts.append(len(counter.operators))
    by, rest = divmod(counts[1] - counts[0], CUT[1] - CUT[0])
    grows = by > 0 and not rest and whole == counts[0] + by * (cut.steps - CUT[0])
    return counts[0] - by * CUT[0] + 1 if grows else 0
