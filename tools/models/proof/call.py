"""A call of a whole model, as it is or as a CUDA graph, that is run and timed again and again."""

from __future__ import annotations

import time
from typing import Any

import torch

from tools.models.copies import copied, holds_objects
from tools.models.loading import Workload
from tools.models.proof.comparing import listed
from tools.models.replay import NotRecordedError, Record

WARM = 8
"""Runs before the first that is timed: a model of 9 ms on an H100 was slower by a tenth in its first ones."""


class Call:
    """A call of a model to be timed; what may grow in it, such as a cache, is copied for each run."""

    def __init__(self, model: Any, workload: Workload) -> None:
        """Call `model` with what a workload has."""
        self._model, self._workload, self._args, self._kwargs = model, workload, workload.args, workload.kwargs
        self._grows = holds_objects((workload.args, workload.kwargs))

    def recorded(self, record: Record) -> Call:
        """Make the same call as a graph, which always reads what it was recorded with."""
        if self._grows:
            raise NotRecordedError("it is given an object, such as a cache that grows")
        replay = record(lambda: self._workload.called(self._model))
        return Call(replay, Workload("", (), {}, 1.0))

    def outputs(self) -> list[torch.Tensor]:
        """Run it once and copy what it gives: a CUDA graph writes to the same place again."""
        args, kwargs = copied((self._args, self._kwargs), None) if self._grows else (self._args, self._kwargs)
        return [value.clone() for value in listed(self._workload.called(self._model, (args, kwargs)))]

    def fastest(self) -> float:
        """Time a few runs and give the fastest, microseconds."""
        return min([self.us() for _ in range(WARM)])

    def us(self) -> float:
        """Time one run from the host, the device idle before and after it, microseconds."""
        args, kwargs = copied((self._args, self._kwargs), None) if self._grows else (self._args, self._kwargs)
        _settle()
        begun = time.perf_counter()
        self._workload.called(self._model, (args, kwargs))
        _settle()
        return (time.perf_counter() - begun) * 1e6


def _settle() -> None:
    device: Any = torch.cuda
    if device.is_initialized():
        device.synchronize()
