"""Outputs as the caller of a chain finds them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tools.evaluation.untrusted.taken_outputs import TakenOutputs
from tools.records import TensorSpec

LIES = {
    "in order": lambda memory: memory[:24].view(2, 3, 4),
    "permuted": lambda memory: memory[:24].view(4, 2, 3).permute(1, 2, 0),
    "with gaps": lambda memory: memory.view(2, 3, 8)[:, :, ::2],
    "one element again and again": lambda memory: memory[:1].expand(2, 3, 4),
}


@pytest.mark.parametrize("lies", LIES.values(), ids=LIES)
def test_an_output_is_taken_as_it_lies(lies: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """What is collected is what was returned, also after another that lay otherwise, and a change behind the call is seen."""
    taken = TakenOutputs([TensorSpec(name="output0", shape=(2, 3, 4), dtype="float32")], "cpu")
    taken.take(torch.zeros(3, 4, 2).permute(2, 0, 1))
    memory, found = torch.arange(48.0), torch.zeros(2, 3, 4)
    taken.take(lies(memory))
    assert not taken.collect([found], 0)
    assert torch.equal(found, lies(memory))
    memory += 1
    assert taken.collect([found], 0)


def test_a_permuted_output_is_copied_in_its_own_order() -> None:
    """Room for it is laid out alike: a chain would charge a transposition to the candidate."""
    taken = TakenOutputs([TensorSpec(name="output0", shape=(2, 3, 4), dtype="float32")], "cpu")
    for name in ("permuted", "in order"):
        taken.take(output := LIES[name](torch.arange(24.0)))
        assert taken._of(0)[0].stride() == output.stride()


def test_a_dimension_of_one_element_is_no_reason_to_lay_out_anew() -> None:
    """Whatever stride it has: that would take the host's time in every call of a chain."""
    taken = TakenOutputs([TensorSpec(name="output0", shape=(4, 1), dtype="float32")], "cpu")
    before = taken._of(0)[0]
    taken.take(torch.arange(4.0).as_strided((4, 1), (1, 7)))
    assert taken._of(0)[0] is before
