"""The outputs of a call as its caller finds them: copied behind it on its caller's stream, waiting for no other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from tools.evaluation.wire.byte_views import same_bytes
from tools.evaluation.wire.channel import OutputShape
from tools.records import TensorSpec
from tools.returned import returned

if TYPE_CHECKING:
    import torch


class TakenOutputs:
    """Outputs of the last call, or of the last calls of a chain.

    They are not copied at once to where they are collected: what is there must not say which calls are.
    """

    def __init__(
        self, specs: Sequence[TensorSpec], device: str, written: Callable[[], list[torch.Tensor]] = list, aliases: Collection[int] = ()
    ) -> None:
        """Make room for one call's: what it returns, and behind that what it has `written` to.

        Of outputs that are `aliases` what lies in memory that was written to is copied with that alone.
        """
        self._specs, self._device, self._written, self._aliases = specs, device, written, aliases
        self._within: dict[int, tuple[int, torch.Tensor]] = {}
        """Such outputs of the last call, by place, and the places of what was written to."""
        self._slots = [self._slot()]
        self._last: list[torch.Tensor] = []
        self.structure = ""
        """How they lie in what the last call returned."""
        self._number, self._late = 0, False

    def make_room(self, calls: int) -> None:
        """Make room for those of the last `calls` of a chain."""
        self._slots += [self._slot() for _ in range(calls - len(self._slots))]

    def take(self, result: Any, number: int = 0, *, late: bool = False) -> None:
        """Copy a call's outputs, by its number in the chain; `late` leaves them where they are until they are collected."""
        found = returned(result)
        self._last, self.structure, self._number, self._late = [*found.tensors, *self._written()], found.structure, number, late
        room = self._of(number)
        self._within = self._found_within(len(found.tensors)) if self._aliases and not late else {}
        for place, (target, output) in enumerate(zip(room, self._last, strict=False)):
            if not late and place not in self._within and _fits(target, output):
                room[place] = target if _lie_alike(target, output) else _laid_out(target, output)
                room[place].copy_(output)

    def shapes(self) -> list[OutputShape]:
        """Say what the last call's were."""
        return [_shape(output) for output in self._last]

    def collect(self, targets: Sequence[torch.Tensor], number: int) -> bool:
        """Copy those of a call to where the supervisor looks; True where the last call's have changed since it returned."""
        changed = False
        for place, (target, taken, output) in enumerate(zip(targets, self._of(number), self._last, strict=False)):
            if not _fits(target, output):
                continue
            if place in self._within:
                target.copy_(self._seen_in_copy(place, self._of(number)))
                continue
            changed = changed or (number == self._number and not self._late and not same_bytes(taken, output))
            target.copy_(output if self._late else taken)
        return changed

    def _found_within(self, returned: int) -> dict[int, tuple[int, torch.Tensor]]:
        owners = {value.untyped_storage()._cdata: place for place, value in enumerate(self._last) if place >= returned and _is_plain(value)}
        outputs = ((place, self._last[place]) for place in self._aliases if place < returned and _is_plain(self._last[place]))
        storages = ((place, output, output.untyped_storage()._cdata) for place, output in outputs)
        found = ((place, owners[storage], output) for place, output, storage in storages if storage in owners)
        return {place: (owner, output) for place, owner, output in found if output.dtype == self._last[owner].dtype}

    def _seen_in_copy(self, place: int, room: Sequence[torch.Tensor]) -> torch.Tensor:
        """Look at the copy of what was written to as an output looks at that."""
        owner, output = self._within[place]
        copy, start = room[owner], output.storage_offset() - self._last[owner].storage_offset()
        return copy.as_strided(output.shape, output.stride(), copy.storage_offset() + start)

    def forget(self) -> None:
        """Hold no output of the candidate's: its memory is free for the next call."""
        self._last = []

    def _of(self, number: int) -> list[torch.Tensor]:
        return self._slots[number % len(self._slots)]

    def _slot(self) -> list[torch.Tensor]:
        import torch

        return [torch.empty(spec.shape, dtype=getattr(torch, spec.dtype), device=self._device) for spec in self._specs]


def _fits(target: torch.Tensor, output: torch.Tensor) -> bool:
    """Whether an output is what its place is for; a subclass may compute when it is read, after the clock has stopped."""
    return _is_plain(output) and output.shape == target.shape and output.dtype == target.dtype


def _lie_alike(target: torch.Tensor, output: torch.Tensor) -> bool:
    """Whether both are in order or have the same strides; a dimension of one element may have any, and is no reason to lay out anew."""
    return target.stride() == output.stride() or (target.is_contiguous() and output.is_contiguous())


def _laid_out(target: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
    """Lay out room as the output lies, where that is dense: taking a permuted output is then no slower than taking the reference's."""
    import torch

    return target.as_strided(output.shape, torch.empty_like(output, device="meta").stride())


def _is_plain(output: torch.Tensor) -> bool:
    import torch

    return type(output) in (torch.Tensor, torch.nn.Parameter)


def _shape(output: torch.Tensor) -> OutputShape:
    sizes = tuple(output.shape)
    places = sorted((stride, size) for stride, size in zip(output.stride(), sizes, strict=True) if size > 1)
    reach, dense = 1, True
    for stride, size in places:
        dense = dense and stride >= reach
        reach = stride * (size - 1) + reach
    return OutputShape(str(output.dtype).removeprefix("torch.") if _is_plain(output) else "a subclass", sizes, dense)
