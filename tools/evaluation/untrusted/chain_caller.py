"""A candidate's calls in a chain, as its runner makes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tools.evaluation.untrusted.caller_stream import CallerStream
from tools.evaluation.untrusted.taken_outputs import TakenOutputs


class ChainCaller:
    """Makes a candidate's calls in a chain."""

    def __init__(
        self, model: Callable[..., object], arguments: Callable[[], list[Any]], outputs: TakenOutputs, caller: CallerStream | None
    ) -> None:
        """Prepare: `caller` says what must be current after each call."""
        self._model, self._arguments, self._outputs, self._caller = model, arguments, outputs, caller
        self.strayed = False
        """Whether a call has left another stream or device current."""

    def call(self, number: int) -> object:
        """Make one."""
        result = self._model(*self._arguments())
        self.strayed = self.strayed or (self._caller is not None and self._caller.was_left())
        return result

    def take(self, result: object, number: int) -> None:
        """Copy its outputs to the place of that number."""
        self._outputs.take(result, number)
