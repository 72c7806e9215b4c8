"""What the driver is handed, read by a library in its place that is compiled from CUDA's own header."""

from __future__ import annotations

import ctypes
import shutil
import struct
from pathlib import Path

import pytest

from tests.tools.evaluation.driver_library import compile_library
from tools.evaluation.wire.driver_api import Driver, DriverError
from tools.evaluation.wire.launch_plan import Argument, pack
from tools.evaluation.wire.tensor_maps import TensorMap

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library in the driver's place."""
    return compile_library(tmp_path_factory.mktemp("driver"))


def said(library: Path) -> str:
    """What the last call was given."""
    call = ctypes.CDLL(str(library)).what_was_said
    call.restype = ctypes.c_char_p
    text: bytes = call()
    return text.decode()


def test_a_launch_arrives_whole(library: Path) -> None:
    """Grid in clusters, block, shared memory, arguments and every attribute are read by C as they were meant."""
    driver = Driver(str(library))
    function = driver.function(b"\x7fELF code", "kernel", 1024)
    values = [pack(Argument(type="pointer", buffer=0, offset=16), (0x7000_0000_1000,)), pack(Argument(type="i32", value=-7), ())]
    launch = driver.launchable(function, (3, 4, 5), 256, 1024, values, cluster=2, cooperative=True, overlapping=True)

    assert launch() == 0
    assert said(library) == (
        "grid 6 4 5 block 256 1 1 shared 1024 stream (nil) parameters 700000001010 -7 overlapping 1 cooperative 1 cluster 2 1 1 spread 1"
    )


def test_a_plain_launch_has_no_attributes(library: Path) -> None:
    """Nothing is asked for that the plan does not say."""
    driver = Driver(str(library))
    launch = driver.launchable(driver.function(b"\x7fELF", "kernel", 0), (1, 1, 1), 32, 0, [bytes(8), struct.pack("<i", 1)])

    assert launch() == 0
    assert said(library).endswith("parameters 0 1")


def test_a_tensor_map_is_encoded_as_triton_would(library: Path) -> None:
    """Dimensions arrive innermost first, strides in bytes without the innermost, and what comes back are the 128 bytes of the map."""
    tensor = TensorMap(buffer=0, offset=32, dtype=7, item=4, shape=(5, 6, 8), strides=(96, 16, 1), box=(1, 2, 4), swizzle=3, nan=True)

    assert tensor.encode(Driver(str(library)), 0x7000_0000_1000) == bytes([0x5A]) * 128
    assert said(library) == (
        "map float32 1 rank 3 at 0x700000001020 sizes 8 6 5 strides 64 384 box 4/1 2/1 1/1 plain 1 swizzled 1 promoted 1 nan 1"
    )


def test_much_shared_memory_is_asked_for(library: Path) -> None:
    """Above 48 KiB a kernel must be allowed its shared memory."""
    Driver(str(library)).function(b"\x7fELF", "kernel", 100_000)
    assert said(library) == "attribute 1 100000"


def test_parameters_are_read(library: Path) -> None:
    """Offsets and sizes come back until there is no more parameter."""
    driver = Driver(str(library))
    assert driver.layout(driver.function(b"\x7fELF", "kernel", 0)) == [(0, 8), (8, 4)]


@pytest.mark.parametrize(
    ("width", "expected"), [(1, "d8 7fff00000010 ff 64"), (2, "d16 7fff00000010 ff 64"), (4, "d32 7fff00000010 ff 64")]
)
def test_fills_arrive(library: Path, width: int, expected: str) -> None:
    """Address, pattern and count reach the memory set of the pattern's width."""
    assert Driver(str(library)).fill(0x7FFF_0000_0010, 0xFF, width, 64) == 0
    assert said(library) == expected


def test_a_refusal_names_the_error(library: Path) -> None:
    """What the driver refuses raises with its own name for the reason."""
    with pytest.raises(DriverError, match="finding other: CUDA_ERROR_NOT_FOUND"):
        Driver(str(library)).function(b"\x7fELF", "other", 0)


def test_no_driver_is_said() -> None:
    """A library that is not there is a DriverError."""
    with pytest.raises(DriverError, match="cannot be loaded"):
        Driver("libno-such-driver.so")


def test_kernels_of_one_code_are_found_in_one_module(library: Path) -> None:
    """Code is loaded once for all of its kernels."""
    driver = Driver(str(library))
    driver.functions(b"\x7fELF code", ("kernel", "kernel"), 0)
    before = int(said(library).removeprefix("module "))
    driver.functions(b"\x7fELF code", ("kernel", "kernel"), 0)

    assert said(library) == f"module {before + 1}"
