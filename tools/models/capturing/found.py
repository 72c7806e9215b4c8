"""Equal calls of a model's modules, as hooks collect them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from tools.autocast.state import rounding_to
from tools.models.calls import tensors
from tools.models.runtime.sections import named

MOST_SHAPES = 4
"""Shapes of one operator at most: a kernel is judged at each of them."""
FEW_ROWS = 128
"""Rows up to which a product takes the time that its weights take to be read, not that of its multiplications."""
BY_ROWS = "a product of one row, of few rows and of many are different kernels"
"""Why calls with different numbers of rows are groups of their own."""


@dataclass(eq=False)
class Found:
    """Equal calls, while they are being collected."""

    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    """Of the first call, its tensors copied."""
    paths: dict[str, None] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    us: dict[str, list[list[float]]] = field(default_factory=dict)
    """By workload: of each run, of each call."""
    autocast: str = ""
    """Dtype to which autocast rounds there; empty where it is off."""

    @property
    def device(self) -> str:
        """Type of the device of what it is given."""
        return next((value.device.type for value in tensors((self.args, self.kwargs))), "cpu")

    def call(self) -> Any:
        """Run it again as it was."""
        with rounding_to(self.autocast, self.device):
            return self.module(*self.args, **self.kwargs)

    def fastest(self, workload: str) -> list[float]:
        """Take of each call of a workload its fastest run, microseconds."""
        return [min(times) for times in zip(*self.us.get(workload, []), strict=False)]

    def weighted(self, weights: Mapping[str, float]) -> float:
        """Microseconds of all calls by the workloads' weights."""
        return sum(sum(self.fastest(name)) * weight for name, weight in weights.items())

    def weight(self, weights: Mapping[str, float]) -> float:
        """How often it is called, by the same."""
        return sum(weights[name] * count for name, count in self.calls.items())

    @property
    def rows(self) -> int:
        """Rows that a matrix among the module's parameters is multiplied with; 0 where none is."""
        widths = {matrix.shape[-1] for matrix in self.module.parameters() if matrix.dim() == 2}
        given = (value.shape for value in tensors((self.args, self.kwargs)))
        return next((math.prod(shape[:-1]) for shape in given if shape and shape[-1] in widths), 0)

    def part(self, model: nn.Module, among: Sequence[str]) -> Found:
        """Take some modules out as calls of their own; of calls and times they get their part by number."""
        paths = [path for path in self.paths if path in among]

        def share(count: int) -> int:
            return count * len(paths) // len(self.paths)

        us = {name: [times[: share(len(times))] for times in runs] for name, runs in self.us.items()}
        calls = {name: share(count) for name, count in self.calls.items()}
        return Found(dict(named(model))[paths[0]], self.args, self.kwargs, dict.fromkeys(paths), calls, us, self.autocast)


def by_rows(founds: Sequence[Found]) -> list[list[Found]]:
    """Part the calls of one kind by the rows that their products have: one, few, or many. Without products they stay together."""
    parts: dict[int, list[Found]] = {}
    for one in founds:
        rows = one.rows
        parts.setdefault((rows > 1) + (rows > FEW_ROWS), []).append(one)
    return list(parts.values())


def represented(founds: Sequence[Found], weights: Mapping[str, float]) -> list[Found]:
    """Put calls of many shapes together by size, so that a few of them, those that take most of the time, stand for all."""
    equal: dict[tuple[torch.Size, ...], list[Found]] = {}
    for one in founds:
        # strides of dimensions of one element may differ
        equal.setdefault(tuple(value.shape for value in tensors((one.args, one.kwargs))), []).append(one)
    alone = [ones[0] if len(ones) == 1 else _together(ones, weights) for ones in equal.values()]
    if len(alone) <= MOST_SHAPES:
        return alone
    ordered = sorted(alone, key=lambda one: sum(value.numel() for value in tensors((one.args, one.kwargs))))
    bins = [ordered[len(ordered) * place // MOST_SHAPES : len(ordered) * (place + 1) // MOST_SHAPES] for place in range(MOST_SHAPES)]
    return [_together(each, weights) for each in bins]


def _together(founds: Sequence[Found], weights: Mapping[str, float]) -> Found:
    first = max(founds, key=lambda one: one.weighted(weights))
    made = Found(first.module, first.args, first.kwargs, autocast=first.autocast)
    for one in founds:
        made.paths.update(one.paths)
        for workload, count in one.calls.items():
            made.calls[workload] = made.calls.get(workload, 0) + count
        for workload, runs in one.us.items():
            own = made.us.get(workload, [[] for _ in runs])
            made.us[workload] = [[*times, *more] for times, more in zip(own, runs, strict=False)]
    return made
