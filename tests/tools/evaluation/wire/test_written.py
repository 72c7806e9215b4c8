"""What calls write to is put back between the calls of a chain, and may be written by a plan."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tools.evaluation.wire import chained_calls
from tools.evaluation.wire.chain_board import BOARD_BYTES, ChainBoard, packed
from tools.evaluation.wire.channel import Load, Patch
from tools.evaluation.wire.launch_plan import Buffer, LaunchPlan, OutputPlace
from tools.evaluation.wire.library_calls import COPY, LibraryCall, View, library_fault
from tools.evaluation.wire.memory import Memory
from tools.evaluation.wire.plan_faults import _output_faults
from tools.evaluation.wire.written import SHORT_BYTES, TINY_BYTES, Written
from tools.records import ABI, TensorSpec

STATE = TensorSpec(name="state", shape=(4,), dtype="float32")
X = TensorSpec(name="x", shape=(4,), dtype="float32")
ABI_ = ABI(
    arguments=(X, STATE),
    outputs=(TensorSpec(name="output0", shape=(4,), dtype="float32"), STATE.model_copy(update={"name": "written_state"})),
    written=("state",),
)


class OpenGate:
    """A gate that holds nobody up."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = torch.from_numpy(values)

    def hold(self, sequence: int) -> None:
        """Do not."""

    reveal = fence = flag = lambda *_: None


class Adds:
    """Adds its input to its state, and keeps what the state was and became."""

    def __init__(self, x: torch.Tensor, state: torch.Tensor) -> None:
        self.x, self.state = x, state
        self.found: list[tuple[list[float], list[float]]] = []

    def call(self, number: int) -> object:
        """Add."""
        before = self.state.tolist()
        self.state += self.x
        self.found.append((before, self.state.tolist()))
        return None

    def take(self, result: object, number: int) -> None:
        """Take nothing."""


@pytest.mark.parametrize("load", [Load(0), Load.WARM])
def test_each_call_of_a_chain_begins_with_what_it_was_given(load: Load) -> None:
    """Elements that change before a call stay changed for those after it; what a call has written does not."""
    board = ChainBoard(Memory(BOARD_BYTES))
    seven = np.float32(7).tobytes()
    patches = [[], [Patch(1, 2, seven)], []]
    board.lay(1, patches)
    data = packed(patches, [4, 4])
    board.values[: len(data)] = np.frombuffer(data, dtype=np.uint8)
    x, state = torch.ones(4), torch.zeros(4)
    written = Written(ABI_, [x, state].__getitem__, {}.__getitem__)
    caller = Adds(x, state)
    gate: Any = OpenGate(board.values)
    chained_calls.issue(board, gate, [x, state], None, caller, load, written)
    assert caller.found == [
        ([0.0] * 4, [1.0] * 4),
        ([0.0, 0.0, 7.0, 0.0], [1.0, 1.0, 8.0, 1.0]),
        ([0.0, 0.0, 7.0, 0.0], [1.0, 1.0, 8.0, 1.0]),
    ]


def test_large_tensors_are_left_where_putting_them_back_would_count() -> None:
    """What is small is put back in any case: a position that goes on counting ends outside of its cache."""
    tensors = {"count": torch.zeros(1), "some": torch.zeros(TINY_BYTES), "cache": torch.zeros(SHORT_BYTES)}
    specs = tuple(TensorSpec(name=name, shape=tuple(value.shape), dtype="float32") for name, value in tensors.items())
    abi = ABI(arguments=(), parameters=specs, outputs=specs, updated=tuple(tensors))
    written = Written(abi, [].__getitem__, tensors.__getitem__)
    for most, left in ((TINY_BYTES, {"some", "cache"}), (SHORT_BYTES, {"cache"}), (None, set())):
        for value in tensors.values():
            value.add_(1)
        written.put_back(most)
        assert {name for name, value in tensors.items() if bool(value.any())} == left


@pytest.mark.parametrize(("index", "refused"), [(1, False), (0, True)])
def test_an_output_may_lie_in_an_argument_that_is_written(index: int, refused: bool) -> None:
    """The reference returns it so; of any other argument it would be no result of the call."""
    buffers = (Buffer(role="input", index=0, nbytes=16), Buffer(role="input", index=1, nbytes=16))
    plan = LaunchPlan(buffers=buffers, steps=(), outputs=(OutputPlace(buffer=index, offset=0, strides=(1,)),), cubins=())
    assert bool(list(_output_faults(plan, ABI_))) is refused


@pytest.mark.parametrize(("role", "refused"), [("written", False), ("input", True)])
def test_the_library_may_write_to_such_an_argument(role: str, refused: bool) -> None:
    """A row of a cache, say, and to no other argument."""
    views = [View(buffer=place, offset=0, dtype="float32", shape=(4,), strides=(1,)) for place in (0, 1)]
    call = LibraryCall(operator=COPY, arguments=(views[0],), results=(views[1],))
    assert bool(library_fault(call, [("input", 16), (role, 16)], packs=False)) is refused
