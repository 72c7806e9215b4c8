"""Small secret changes of the inputs between timed calls: too few to cost time, enough that an old answer is wrong."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from tools.complex_pairs import is_inexact
from tools.evaluation.wire.byte_views import as_bytes
from tools.evaluation.wire.channel import MAX_PATCHES, Patch
from tools.float8 import writable
from tools.records import ITEM_BYTES, TensorSpec

if TYPE_CHECKING:
    import numpy
    import torch

_TILE = 4
"""Neighbouring elements that change together where as little as possible changes."""


def draw(specs: Sequence[TensorSpec], pools: Mapping[int, numpy.ndarray], generator: random.Random) -> list[Patch]:
    """Choose a few elements of every float input and what they become.

    A value is one of the input's `pool`, elements of the same tensor as bytes [elements, bytes], so that no input leaves its own range.
    """
    drawn = []
    for argument, count in _counts(specs).items():
        # all at once: a chain has a thousand of them, drawn while the device is held
        pool = pools[argument]
        rows = pool[generator.choices(range(len(pool)), k=count)]
        values, size = rows.tobytes(), rows.shape[1]
        places = generator.sample(range(specs[argument].numel), count)
        drawn += [Patch(argument, element, values[at : at + size]) for at, element in zip(range(0, len(values), size), places, strict=True)]
    return drawn


def stand_ins(specs: Sequence[TensorSpec]) -> list[Patch]:
    """As many changes as are drawn, of no values: what they cost is the same."""
    return [Patch(argument, element, b"") for argument, count in _counts(specs).items() for element in range(count)]


def _counts(specs: Sequence[TensorSpec]) -> dict[int, int]:
    """How many elements of each float input change."""
    floats = floats_of(specs)
    each = min(48, MAX_PATCHES // max(len(floats), 1))
    return {argument: min(each, max(1, specs[argument].numel // 8)) for argument in floats}


def apply(patches: Iterable[Patch], tensors: Sequence[torch.Tensor]) -> None:
    """Write changed elements into the inputs, wherever these are; of one that changed more than once the last value stays."""
    for argument, (where, values) in staged(patches, [tensor.dtype for tensor in tensors]).items():
        flat = writable(tensors[argument].view(-1))
        flat.index_copy_(0, where.to(flat.device), values.to(flat.device))


def replaced(patches: Iterable[Patch], tensors: Sequence[torch.Tensor]) -> list[Patch]:
    """Write changed elements into the inputs, and give what takes these changes back."""
    patches, before = list(patches), []
    for argument, (where, _) in staged(patches, [tensor.dtype for tensor in tensors]).items():
        flat = tensors[argument].view(-1)
        values = as_bytes(flat).view(len(flat), -1)[where.to(flat.device)].cpu()
        before += [Patch(argument, element, bytes(value)) for element, value in zip(where.tolist(), values.tolist(), strict=True)]
    apply(patches, tensors)
    return before


def staged(patches: Iterable[Patch], dtypes: Sequence[torch.dtype]) -> dict[int, tuple[torch.Tensor, torch.Tensor]]:
    """Places and values of the changed elements by input, on the CPU; those of float8 as bytes."""
    import torch

    last: dict[int, dict[int, bytes]] = {}
    for argument, element, value in patches:
        last.setdefault(argument, {})[element] = value
    found = {}
    for argument, elements in last.items():
        dtype = dtypes[argument]
        values = bytearray().join(value[: dtype.itemsize] for value in elements.values())
        found[argument] = (torch.tensor(list(elements)), writable(torch.frombuffer(values, dtype=dtype)))
    return found


def alter_tile(tensors: Sequence[torch.Tensor], generator: random.Random) -> None:
    """Change a few neighbouring elements of one float input among `tensors`, as little as makes an old answer wrong.

    Whoever knows inputs by some of their elements takes the changed ones for the old.
    """
    floats = [tensor for tensor in tensors if is_inexact(tensor) and tensor.numel() > 1]
    if not floats:
        return
    values = generator.choice(floats).view(-1)
    first = generator.randrange(max(1, len(values) - _TILE + 1))
    for element in range(first, min(first + _TILE, len(values))):
        values[element] = values[generator.randrange(len(values))].clone()


def floats_of(specs: Sequence[TensorSpec]) -> list[int]:
    """Places of the inputs whose elements may change: floats of more than one element."""
    return [index for index, spec in enumerate(specs) if spec.is_float and spec.numel > 1]


def elements_of(contents: numpy.ndarray, spec: TensorSpec) -> numpy.ndarray:
    """View the bytes of a tensor as [elements, bytes]."""
    return contents.reshape(spec.numel, ITEM_BYTES[spec.dtype])
