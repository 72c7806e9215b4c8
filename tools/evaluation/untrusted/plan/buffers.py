"""Which memory of a candidate is which buffer of the plan that is made of it, and how long it is held."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

from tools.evaluation.untrusted.plan.fill_patterns import Unsealable
from tools.evaluation.wire.launch_plan import Buffer

if TYPE_CHECKING:
    import torch

Role = Literal["input", "parameter", "packed", "made"]


class PlanBuffers:
    """The buffers of one call, found by the storage of a tensor."""

    def __init__(self) -> None:
        """Begin with none."""
        self._buffers: list[Buffer] = []
        self._places: dict[int, int] = {}
        # weak, so that it is seen when host code lets go of one; and kept, since a storage that is gone may give its address to another
        self._references: dict[int, Any] = {}
        self._held: set[int] = set()
        self._until: dict[int, int] = {}

    def copy(self) -> Self:
        """Begin another call with the same."""
        made = type(self)()
        made._buffers, made._places, made._references = list(self._buffers), dict(self._places), dict(self._references)
        made._held = set(self._held)
        return made

    def __len__(self) -> int:
        """Count them."""
        return len(self._buffers)

    def __getitem__(self, place: int) -> Buffer:
        """Give one."""
        return self._buffers[place]

    @property
    def storages(self) -> dict[int, int]:
        """Which place each storage has."""
        return self._places

    def own(self, tensor: torch.Tensor, role: Role, index: int = 0) -> int:
        """Take a tensor's memory for a new buffer, and give its place."""
        from torch.multiprocessing.reductions import StorageWeakRef

        storage = tensor.untyped_storage()
        place = self.add(Buffer(role=role, index=index, nbytes=int(storage.nbytes())), storage._cdata)
        # torch ships no types of it
        weak: Any = StorageWeakRef
        self._references[place] = weak(storage)
        self._held.add(place)
        return place

    def add(self, buffer: Buffer, storage: int = 0) -> int:
        """Take a buffer, of a storage that is known elsewhere or of none, and give its place."""
        self._buffers.append(buffer)
        if storage:
            self._places[storage] = len(self._buffers) - 1
        return len(self._buffers) - 1

    def find(self, tensor: torch.Tensor) -> int | None:
        """Give the place of a tensor's memory; None where it is unknown."""
        return self._places.get(tensor.untyped_storage()._cdata)

    def place(self, tensor: torch.Tensor) -> int:
        """Give the place of a tensor's memory; Unsealable where it is unknown."""
        found = self.find(tensor)
        if found is None:
            raise Unsealable("it uses a tensor that is no input, no parameter, and not made in the same call")
        return found

    def notice(self, step: int) -> None:
        """Remember of what host code has let go before a step."""
        for place in [place for place in self._held if self._references[place].expired()]:
            self._held.remove(place)
            self._until[place] = step

    def until(self, place: int) -> int:
        """Say before which step host code had let go of a buffer; -1 where it had not."""
        return self._until.get(place, -1)

    def let_go(self, place: int, step: int) -> None:
        """Say that host code lets go of a buffer before a step."""
        self._until[place] = step

    def final(self, read: set[int], kept: set[int], allotted: set[int]) -> tuple[Buffer, ...]:
        """Give all buffers, those without memory that nobody reads, and say of those that torch allots how long they are held."""
        changes: dict[int, dict[str, int]] = {place: {"nbytes": 0} for place in allotted - read}
        for place in (allotted & read) - kept:
            changes[place] = {"until": self.until(place)}
        return tuple(buffer.model_copy(update=changes.get(place, {})) for place, buffer in enumerate(self._buffers))
