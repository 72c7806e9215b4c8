"""Runs an operator for tensors of one look: the first call is recorded, the others play it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from tools.models.runtime.launching import UnplannedError
from tools.models.runtime.plans import Play
from tools.models.runtime.rounding import unrounded

if TYPE_CHECKING:
    from tools.models.runtime.operators import KernelOperator

MOST_TRIES = 3
"""Calls that are recorded before it is known that none can be played again: a tensor may be given twice in one of them."""


class Player:
    """One look of one operator."""

    def __init__(self, operator: KernelOperator) -> None:
        self._operator = operator
        self._play: Play | None = None
        self._tries = MOST_TRIES if operator.can_be_played() else 0

    def __call__(self, *tensors: torch.Tensor) -> list[torch.Tensor]:
        """Give the results for inputs and parameters."""
        if self._play is None:
            return self._recorded(*tensors) if self._tries else self._operator.run(*tensors)
        with unrounded():
            found = self._play(*tensors, *self._operator.packed(*tensors))
        if found is None:
            # on another device, at an odd address, or while somebody listens to launches
            return self._operator.run(*tensors)
        self._operator.hits += 1
        return found

    def _recorded(self, *tensors: torch.Tensor) -> list[torch.Tensor]:
        self._tries -= 1
        results, make = self._operator.recorded(*tensors)
        try:
            self._play = make()
        except UnplannedError as error:
            self._operator.unplanned = str(error)
        return results
