"""What is to be done with the tensors of a large problem, which stay on the device."""

from __future__ import annotations

from typing import Literal

from tools.records import Record

Order = Literal["share", "give", "take", "pool", "drop", "try"]

PROOF = 7
"""What every byte of the memory holds that is only shared to see whether that works."""


class DeviceStoreJob(Record):
    """What to do with one store; which fields count is the order's affair."""

    store: str
    order: Order
    call: int | None = None
    """Whose inputs to give, or whose outputs are taken; none: these are not kept."""
    run: int = 0
    poison: int | None = None
    """Byte that the place of the outputs is filled with afterwards."""
    compare: bool = True
    """Whether to hold the inputs, as the call left them, against what they were."""
    patches: tuple[tuple[int, int, str], ...] = ()
    """Changed elements since the inputs were given or something was taken: input, flat element, value in hexadecimal digits."""


class DeviceStoreAnswer(Record):
    """What was found."""

    changed: str = ""
    """An input that the call changed."""
