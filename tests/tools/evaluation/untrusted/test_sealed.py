"""A plan at work on the CPU, with a library in the driver's place: buffers, borders, outputs, what is refused."""

from __future__ import annotations

import base64
import ctypes
import shutil
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.tools.evaluation.driver_library import compile_library
from tools.evaluation.untrusted.sealed import SealedModel
from tools.evaluation.untrusted.sealed_memory import BreachError, Held
from tools.evaluation.wire.driver_api import Driver, DriverError
from tools.evaluation.wire.launch_plan import Argument, Buffer, Fill, KernelLaunch, LaunchPlan, OutputPlace
from tools.records import ABI, TensorSpec

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

X = TensorSpec(name="x", shape=(4,), dtype="int32")
WEIGHT = TensorSpec(name="weight", shape=(2,), dtype="int32")
OUT = TensorSpec(name="out", shape=(2, 3), dtype="int32")
ABI_ = ABI(arguments=(X,), parameters=(WEIGHT,), outputs=(OUT,))


def plan(offset: int = 0, function: str = "kernel", types: tuple[str, ...] = ("pointer", "i32")) -> LaunchPlan:
    """Fill the output's buffer with 1s, then write 7 at `offset` bytes into it."""
    arguments = (Argument(type="pointer", buffer=2, offset=offset), *(Argument(type=one, value=7) for one in types[1:]))
    launch = KernelLaunch(cubin=0, function=function, grid=(1, 1, 1), threads=32, shared_bytes=0, arguments=arguments)
    return LaunchPlan(
        buffers=(Buffer(role="input", nbytes=16), Buffer(role="parameter", nbytes=8), Buffer(role="made", nbytes=24)),
        steps=(Fill(buffer=2, offset=0, nbytes=24, width=1, pattern=1), launch),
        outputs=(OutputPlace(buffer=2, offset=0, strides=(1, 2)),),
        cubins=(base64.b64encode(b"\x7fELF").decode(),),
    )


def inside(model: SealedModel, place: int) -> torch.Tensor:
    """The bytes of one buffer."""
    held = model._memory[place]
    assert isinstance(held, Held)
    return held.inside


@pytest.fixture(scope="module")
def seal(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., SealedModel]:
    """Make a plan ready on the CPU; its kernel writes one number to where it is pointed."""
    library = compile_library(tmp_path_factory.mktemp("driver"))
    ctypes.c_int.in_dll(ctypes.CDLL(str(library)), "works").value = 1

    def make(offset: int = 0, function: str = "kernel", types: tuple[str, ...] = ("pointer", "i32"), **changes: Any) -> SealedModel:
        made = plan(offset, function, types).model_copy(update=changes)
        return SealedModel(made, ABI_, [torch.tensor([5, 6], dtype=torch.int32)], "cpu", Driver(str(library)))

    return make


def test_steps_run_in_order(seal: Callable[..., SealedModel]) -> None:
    """The fill comes before the kernel; the output has the ABI's shape and the plan's strides."""
    (out,) = seal(offset=8)()

    # element 2 of memory is (0, 1) where the first dimension is the fast one
    assert out.tolist() == [[0x01010101, 7, 0x01010101], [0x01010101] * 3]
    assert out.stride() == (1, 2)


def test_poison_reaches_what_the_call_makes_alone(seal: Callable[..., SealedModel]) -> None:
    """Outputs hold the pattern, inputs what they were given."""
    model = seal()
    model.inputs[0].copy_(torch.arange(4))
    model.poison(0xFF)

    assert model.inputs[0].tolist() == [0, 1, 2, 3]
    assert model._outputs[0]().unique().tolist() == [-1]
    model.check_borders()


@pytest.mark.parametrize("offset", [-4, 24, 4096])
def test_writing_beside_a_buffer_is_found(seal: Callable[..., SealedModel], offset: int) -> None:
    """One number just before, just after, or a page behind a buffer is a breach that names the buffer."""
    model = seal(offset=offset)
    model.check_borders()
    model()

    with pytest.raises(BreachError, match="beside its made"):
        model.check_borders()


def test_a_kernel_that_takes_other_arguments_is_refused(seal: Callable[..., SealedModel]) -> None:
    """A plan whose arguments are not those of the machine code is not run."""
    with pytest.raises(BreachError, match="takes parameters at"):
        seal(types=("pointer", "i64"))


def test_a_kernel_that_is_not_there_is_the_drivers_word(seal: Callable[..., SealedModel]) -> None:
    """The driver's refusal names what was looked for."""
    with pytest.raises(DriverError, match="finding other"):
        seal(function="other")


def test_packed_weights_are_packed_anew_before_every_call(seal: Callable[..., SealedModel]) -> None:
    """What a kernel leaves in packed memory is gone when the next call begins: the pattern goes over it, and the step runs again."""
    packing = Fill(buffer=3, offset=0, nbytes=8, width=1, pattern=3)
    model = seal(buffers=(*plan().buffers, Buffer(role="packed", nbytes=16)), packing=(packing,))
    packed = inside(model, 3)
    assert packed[:8].tolist() == [3] * 8
    packed.fill_(9)
    model()
    assert packed.tolist() == [9] * 16
    model.poison(0xFF)
    assert packed.tolist() == [3] * 8 + [0xFF] * 8
