"""Random numbers that a model draws as it runs: written down in one run and given again in a run in another dtype."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tools.problems.seeding import seeded

DRAWS = ("rand", "normal", "uniform", "bernoulli", "exponential", "multinomial", "native_dropout")
"""How the names of operators begin whose results are random numbers, or are made of them."""
SEED = 1


class Recorded(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's class is untyped
    """Writes down what is drawn inside it."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # the same
        self.drawn: list[torch.Tensor] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator, and keep a copy of what it drew."""
        result = func(*args, **(kwargs or {}))
        if _draws(func):
            self.drawn.append((result[1] if isinstance(result, tuple) else result).clone())
        return result


class Replayed(TorchDispatchMode):  # type: ignore[no-untyped-call]  # the same
    """Gives numbers that were written down instead of new ones; where their shapes do not fit, new ones are drawn."""

    def __init__(self, drawn: list[torch.Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # the same
        self._drawn = iter(drawn)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator, and put in the place of what it drew the next numbers that are known."""
        result = func(*args, **(kwargs or {}))
        known = next(self._drawn, None) if _draws(func) else None
        if isinstance(result, tuple):
            fits = known is not None and known.shape == result[1].shape
            return (args[0] * known / (1.0 - args[1]), known) if fits else result
        return result.copy_(known) if known is not None and known.shape == result.shape else result


def same_numbers(device: str) -> Any:
    """Have every run draw the same."""
    return seeded(SEED, device)


def _draws(func: Any) -> bool:
    return func.namespace == "aten" and torch.Tag.nondeterministic_seeded in func.tags and func.__name__.startswith(DRAWS)
