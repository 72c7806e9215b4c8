"""Changed elements of inputs."""

from __future__ import annotations

import random

import numpy as np
import torch

from tools.evaluation.wire.channel import MAX_PATCHES, Patch
from tools.evaluation.wire.patching import alter_tile, apply, draw, elements_of, replaced
from tools.records import TensorSpec


def test_a_tile_changes_and_nothing_else() -> None:
    """At most four neighbouring elements of one float input change; integers stay, and no value leaves its range."""
    before = torch.arange(279, dtype=torch.float32)
    x, index = before.clone().view(9, 31), torch.full((40,), 7)

    alter_tile([x, index], random.Random(5))

    changed = (x.view(-1) != before).nonzero().view(-1).tolist()
    assert 1 <= len(changed) <= 4
    assert changed[-1] - changed[0] < 4
    assert set(x.view(-1).tolist()) <= set(before.tolist())
    assert (index == 7).all()


def test_inputs_without_floats_stay_as_they_are() -> None:
    """Integers may be indices or lengths: another order of them may mean nothing."""
    index = torch.arange(4)
    alter_tile([index], random.Random(5))
    assert index.tolist() == [0, 1, 2, 3]


def test_drawn_elements_take_values_of_their_own_input() -> None:
    """Every float input changes in a few elements, to values out of its pool; what has no floats does not."""
    specs = [TensorSpec(name="x", shape=(1000,), dtype="float32"), TensorSpec(name="i", shape=(9,), dtype="int64")]
    specs.append(TensorSpec(name="y", shape=(500,), dtype="float16"))
    pools = {0: np.arange(8, dtype=np.float32), 2: np.arange(16, dtype=np.float16)}
    drawn = draw(
        specs, {place: elements_of(pool.view(np.uint8), _like(specs[place], len(pool))) for place, pool in pools.items()}, random.Random(1)
    )

    assert {patch.argument for patch in drawn} == {0, 2}
    assert 2 <= len(drawn) <= MAX_PATCHES
    for argument, element, value in drawn:
        assert element < specs[argument].numel
        assert np.frombuffer(value, dtype=pools[argument].dtype)[0] in pools[argument]


def test_of_an_element_that_changed_twice_the_last_value_stays() -> None:
    """Changes are applied in order, by input, and to nothing else."""
    values = [torch.zeros(4), torch.zeros(2, 2, dtype=torch.bfloat16)]
    one, two = np.float32(1).tobytes(), np.float32(2).tobytes()
    half = torch.tensor([3.0], dtype=torch.bfloat16).view(torch.uint8).numpy().tobytes()
    apply([Patch(0, 2, one), Patch(1, 3, half + bytes(6)), Patch(0, 2, two)], values)

    assert values[0].tolist() == [0, 0, 2, 0]
    assert values[1].view(-1).tolist() == [0, 0, 0, 3]


def _like(spec: TensorSpec, numel: int) -> TensorSpec:
    return spec.model_copy(update={"shape": (numel,)})


def test_changes_are_taken_back_in_the_other_order() -> None:
    """What stood there before comes back to the last bit, of an element that changed twice, too."""
    values = [
        torch.rand(40),
        torch.rand(6, 6, dtype=torch.bfloat16),
        torch.rand(9).to(torch.float8_e5m2),
        torch.rand(9, dtype=torch.complex64),
    ]
    kept = [value.clone() for value in values]
    changes = [[Patch(place, element, bytes(range(1, 9))) for place in range(4)] for element in (2, 3, 2)]
    before = [replaced(change, values) for change in changes]
    assert not any(torch.equal(a.view(torch.uint8), b.view(torch.uint8)) for a, b in zip(values, kept, strict=True))
    for change in reversed(before):
        apply(change, values)
    assert all(torch.equal(a.view(torch.uint8), b.view(torch.uint8)) for a, b in zip(values, kept, strict=True))
