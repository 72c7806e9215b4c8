"""Inputs that differ from those before in a few elements."""

from __future__ import annotations

import random

import numpy as np

from tools.evaluation.memory import Block
from tools.evaluation.patches import alter_tile
from tools.records import TensorSpec


def test_a_tile_changes_and_nothing_else() -> None:
    """At most four neighbouring elements of one float input change; integers stay, and no value leaves its range."""
    block = Block([TensorSpec(name="x", shape=(9, 31), dtype="float32"), TensorSpec(name="index", shape=(40,), dtype="int64")])
    contents = np.zeros(block.nbytes, dtype=np.uint8)
    before = np.arange(279, dtype=np.float32)
    contents[:1116] = before.view(np.uint8)
    contents[block.offsets[1] : block.offsets[1] + 320] = 7

    alter_tile(block, contents, random.Random(5))

    after = contents[:1116].view(np.float32)
    changed = np.flatnonzero(after != before)
    assert 1 <= len(changed) <= 4
    assert changed[-1] - changed[0] < 4
    assert set(after) <= set(before)
    assert (contents[block.offsets[1] : block.offsets[1] + 320] == 7).all()


def test_inputs_without_floats_stay_as_they_are() -> None:
    """Integers may be indices or lengths: another order of them may mean nothing."""
    block = Block([TensorSpec(name="index", shape=(4,), dtype="int64")])
    contents = np.arange(block.nbytes, dtype=np.uint8)

    alter_tile(block, contents, random.Random(5))

    assert (contents == np.arange(block.nbytes, dtype=np.uint8)).all()
