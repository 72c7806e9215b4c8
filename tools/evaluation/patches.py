"""Small secret changes of the inputs between timed calls: too few to cost time, enough that an old answer is wrong."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tools.evaluation.channel import MAX_PATCHES
from tools.evaluation.memory import Block
from tools.records import ITEM_BYTES

_FLOATS = ("float64", "float32", "float16", "bfloat16")


@dataclass(frozen=True)
class Patches:
    """Which elements changed: (input, flat element)."""

    elements: list[tuple[int, int]]

    def places(self, block: Block) -> Iterator[slice]:
        """List the bytes of the changed elements in `block`."""
        for argument, element in self.elements:
            width = ITEM_BYTES[block.specs[argument].dtype]
            start = block.offsets[argument] - block.start + element * width
            yield slice(start, start + width)


def draw(block: Block, contents: np.ndarray, generator: random.Random) -> Patches:
    """Change a few elements of every float input in `contents` (all inputs' bytes) and say which.

    An element takes the value of another element of the same tensor, so that no input leaves its own range.
    """
    floats = [index for index, spec in enumerate(block.specs) if spec.dtype in _FLOATS and spec.numel > 1]
    each = min(48, MAX_PATCHES // max(len(floats), 1))
    changed: list[tuple[int, int]] = []
    for argument in floats:
        spec = block.specs[argument]
        width = ITEM_BYTES[spec.dtype]
        start = block.offsets[argument] - block.start
        values = contents[start : start + spec.nbytes].reshape(spec.numel, width)
        for element in generator.sample(range(spec.numel), min(each, max(1, spec.numel // 8))):
            values[element] = values[generator.randrange(spec.numel)]
            changed.append((argument, element))
    return Patches(changed)
