"""The border: whatever bytes come out of a runner are read without harm."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.evaluation.wire.channel import Command, Exchange, Load, Order, OutputShape, Patch, Reply, State
from tools.evaluation.wire.memory import Memory
from tools.records import ABI, TensorSpec

SPECS = (TensorSpec(name="x", shape=(5, 7), dtype="float32"), TensorSpec(name="i", shape=(9,), dtype="int64"))
ONE = TensorSpec(name="output0", shape=(5, 7), dtype="float32")
INTERFACE = ABI(arguments=SPECS, outputs=(ONE,))


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes_are_no_reply_or_a_valid_one(data: bytes) -> None:
    """Any message is either refused or has a known state."""
    reply = Reply.unpack(data)

    assert reply is None or reply.state in set(State)


@settings(deadline=None)
@given(st.binary(min_size=3000, max_size=3000))
def test_random_report_gives_bounded_shapes(data: bytes) -> None:
    """Any bytes in the report give at most 32 outputs of at most 8 dimensions."""
    exchange = Exchange(INTERFACE)
    memory = Memory(exchange.size)
    memory.bytes_at(0, len(data))[:] = np.frombuffer(data, dtype=np.uint8)
    shapes = exchange.read_shapes(memory)
    memory.close()

    assert len(shapes) <= 32
    assert all(len(shape.shape) <= 8 for shape in shapes)


@settings(deadline=None)
@given(st.binary(min_size=1, max_size=300))
def test_random_report_gives_a_bounded_structure_that_can_be_printed(data: bytes) -> None:
    """Any bytes in the report give at most 4096 printable characters of ASCII."""
    exchange = Exchange(INTERFACE)
    memory = Memory(exchange.size)
    whole = data * (16000 // len(data))
    memory.bytes_at(0, len(whole))[:] = np.frombuffer(whole, dtype=np.uint8)
    structure = exchange.read_structure(memory)
    memory.close()

    assert len(structure) <= 4096
    assert structure.isascii()
    assert structure.isprintable()


@pytest.mark.parametrize("structure", ["", "tensor", "(tensor, {'a\\n': tensor, 'b': None})", "[" + "tensor, " * 480 + "]"])
def test_a_structure_comes_back_as_written(structure: str) -> None:
    """How outputs lie in a result is read as it was written, whatever was there before."""
    exchange = Exchange(INTERFACE)
    memory = Memory(exchange.size)
    exchange.write_structure(memory, "x" * 9999)
    assert exchange.read_structure(memory) == "x" * 4096
    exchange.write_structure(memory, structure)
    assert exchange.read_structure(memory) == structure
    memory.close()


def test_messages_come_back_as_sent() -> None:
    """A command and a reply survive packing."""
    command = Command(Order.CALL, Load.PATCHES | Load.POISON_B, 3)

    assert Command.unpack(command.pack()) == command
    assert Reply.unpack(Reply(State.DONE, 1.5, 2.5).pack()) == Reply(State.DONE, 1.5, 2.5)


@pytest.mark.parametrize("time", [float("nan"), float("inf"), -1.0])
def test_a_time_that_is_none_is_no_answer(time: float) -> None:
    """A reply whose times are not finite, or negative, is refused whole: it would get into medians and records."""
    assert Reply.unpack(Reply(State.DONE, time, 2.5).pack()) is None
    assert Reply.unpack(Reply(State.DONE, 1.5, time).pack()) is None


@pytest.mark.parametrize(
    ("shape", "word"),
    [
        (OutputShape("float32", (1, 7), True), "shape"),
        (OutputShape("float32", (35,), True), "shape"),
        (OutputShape("float16", (5, 7), True), "float16"),
        (OutputShape("float32", (5, 7), False), "same memory"),
    ],
)
def test_output_that_differs_from_the_abi_is_named(shape: OutputShape, word: str) -> None:
    """Shape, dtype and density are held against the ABI, with the reason."""
    assert word in str(shape.mismatch(ONE))
    assert OutputShape("float32", (5, 7), True).mismatch(ONE) is None


def test_memory_cannot_be_resized() -> None:
    """Whoever holds the memory cannot shrink it under a reader."""
    memory = Memory(4096)

    with pytest.raises(PermissionError):
        os.ftruncate(memory.fd, 0)
    memory.close()


def test_patches_come_back_as_written() -> None:
    """Which elements changed and what they are now crosses the border, values short or long."""
    exchange = Exchange(INTERFACE)
    memory = Memory(exchange.size)
    exchange.write_patches(memory, [Patch(0, 34, b"abcd"), Patch(1, 1 << 40, b"12345678")])

    assert exchange.read_patches(memory, 2) == [Patch(0, 34, b"abcd" + bytes(4)), Patch(1, 1 << 40, b"12345678")]
    memory.close()


def test_large_tensors_lie_beside_the_exchange() -> None:
    """What is shared with the supervisor has no room for them then, and they have no gap before them."""
    beside, within = Exchange(INTERFACE, beside=True), Exchange(INTERFACE)

    assert beside.inputs.start == beside.parameters.end == 0
    assert within.inputs.start >= beside.parameters.end + 4096
    assert beside.outputs.end == within.outputs.end - within.inputs.start
