"""Random numbers that depend on a seed alone, and leave the caller's generators as they were."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def seed_torch(seed: int) -> None:
    """Seed torch's generators, on every device."""
    if torch.version.cuda or torch.version.hip:
        torch.manual_seed(seed)
    else:
        # without a GPU's library there is one generator; torch.manual_seed would keep a stack trace for each device that may yet come
        torch.default_generator.manual_seed(seed)


@contextmanager
def seeded(seed: int, device: str = "cpu") -> Iterator[None]:
    """Seed torch (on the CPU and on `device`), numpy and Python for the body; put their states back afterwards."""
    place = torch.device(device)
    devices = [place.index if place.index is not None else torch.cuda.current_device()] if place.type == "cuda" else []
    python_state, numpy_state = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=devices):
        seed_torch(seed)
        random.seed(seed)
        np.random.seed(seed % 2**32)
        try:
            yield
        finally:
            random.setstate(python_state)
            np.random.set_state(numpy_state)
