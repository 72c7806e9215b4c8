"""What calls write to, put back before each of them: a call begins with what it was given, not with what the call before left."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from tools.records import ABI

if TYPE_CHECKING:
    import torch

SHORT_BYTES = 1 << 24
"""Tensors up to this size are put back between calls among which work may hide no longer than that takes, some 8 µs on an H200."""
TINY_BYTES = 1 << 16
"""Those up to this size, such as counters and positions, are put back where it is in the calls' own time."""


class Written:
    """Tensors that calls write to, and what each call finds in them."""

    def __init__(self, abi: ABI, inputs: Callable[[int], torch.Tensor], state: Callable[[str], torch.Tensor]) -> None:
        """Keep those of `abi` as they are: `inputs` gives an input by its place, `state` a parameter or buffer by its name."""
        self._abi, self._inputs, self._state = abi, inputs, state
        self._kept = [value.clone() for value in self.now()]

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._kept)

    @property
    def given(self) -> Mapping[int, torch.Tensor]:
        """What calls find in inputs, by place: who gives a call other inputs changes this."""
        return dict(zip(self._abi.written_places, self._kept, strict=False))

    def now(self) -> list[torch.Tensor]:
        """Give the tensors themselves, in the order of `abi.outputs`."""
        return [*map(self._inputs, self._abi.written_places), *map(self._state, self._abi.updated)]

    def put_back(self, most_bytes: int | None = None) -> None:
        """Make them what a call finds; the others go on from what the last call left where that must not take long."""
        for target, value in zip(self.now(), self._kept, strict=True):
            if most_bytes is None or value.nbytes <= most_bytes:
                target.copy_(value)


def nothing_written() -> Written:
    """Give none."""
    return Written(ABI(arguments=(), outputs=()), _none, _none)


def _none(_: object) -> torch.Tensor:
    raise KeyError


def given_inputs(inputs: Sequence[torch.Tensor], written: Written) -> list[torch.Tensor]:
    """List the inputs, of those that calls write to what they find."""
    given = written.given
    return [given.get(place, value) for place, value in enumerate(inputs)]
