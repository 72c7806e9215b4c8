"""Which of several devices a machine's is most like: the one whose numbers kernels run with there."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import nn

Device = tuple[str, tuple[int, int], int]
"""Name, compute capability, multiprocessors."""


def device_here(model: nn.Module | None = None) -> Device | None:
    """Describe the device of a model, or without one this machine's first; None where there is none."""
    held = [] if model is None else [value.device for value in (*model.parameters(), *model.buffers()) if value.is_cuda]
    if not (held or (model is None and torch.cuda.is_available())):
        return None
    found = torch.cuda.get_device_properties(held[0] if held else 0)
    return found.name, (found.major, found.minor), found.multi_processor_count


def nearest(devices: Mapping[str, Device], here: Device | None) -> str:
    """Name the nearest: that device itself, else by generation, compute capability and number of multiprocessors; the first without any."""
    if here is None:
        return next(iter(devices))
    name, (major, minor), count = here

    def far(key: str) -> tuple[bool, int, int, float]:
        title, (its_major, its_minor), its_count = devices[key]
        return title != name, abs(its_major - major), abs(its_minor - minor), abs(math.log(its_count / count))

    return min(devices, key=far)
