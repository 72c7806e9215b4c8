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


def test_what_lies_in_an_argument_that_was_written_is_copied_once() -> None:
    """A view of it is read out of the copy of the whole, each call's out of its own; another tensor in its place is copied."""
    specs = [TensorSpec(name="output0", shape=(3, 2), dtype="float32"), TensorSpec(name="written_x", shape=(3, 4), dtype="float32")]
    x = torch.arange(12.0).view(3, 4)
    taken = TakenOutputs(specs, "cpu", lambda: [x], aliases=(0,))
    taken.make_room(2)
    found, whole = torch.zeros(3, 2), torch.zeros(3, 4)
    for number in range(2):
        taken.take(x[:, 1:3], number)
        x += 1
    taken.collect([found, whole], 0)
    assert torch.equal(found, torch.arange(12.0).view(3, 4)[:, 1:3])
    assert torch.equal(whole, torch.arange(12.0).view(3, 4))
    assert taken.collect([found, whole], 1)
    taken.take(x[:, 1:3].clone(), 0)
    assert not taken.collect([found, whole], 0)
    assert torch.equal(found, x[:, 1:3])
