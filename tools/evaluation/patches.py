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
_TILE = 4
"""Neighbouring elements that change together where as little as possible changes."""


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
    floats = _floats(block)
    each = min(48, MAX_PATCHES // max(len(floats), 1))
    changed: list[tuple[int, int]] = []
    for argument in floats:
        values = _elements(block, contents, argument)
        for element in generator.sample(range(len(values)), min(each, max(1, len(values) // 8))):
            values[element] = values[generator.randrange(len(values))]
            changed.append((argument, element))
    return Patches(changed)


def alter_tile(block: Block, contents: np.ndarray, generator: random.Random) -> None:
    """Change a few neighbouring elements of one float input in `contents`, as little as makes an old answer wrong.

    Whoever knows inputs by some of their elements takes the changed ones for the old.
    """
    floats = _floats(block)
    if not floats:
        return
    values = _elements(block, contents, generator.choice(floats))
    first = generator.randrange(max(1, len(values) - _TILE + 1))
    for element in range(first, min(first + _TILE, len(values))):
        values[element] = values[generator.randrange(len(values))]


def _floats(block: Block) -> list[int]:
    return [index for index, spec in enumerate(block.specs) if spec.dtype in _FLOATS and spec.numel > 1]


def _elements(block: Block, contents: np.ndarray, argument: int) -> np.ndarray:
    """View the bytes of each element of an input."""
    spec = block.specs[argument]
    start = block.offsets[argument] - block.start
    return contents[start : start + spec.nbytes].reshape(spec.numel, ITEM_BYTES[spec.dtype])
