"""Resources read from machine code that Triton really made."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.tools.conftest import Read
from tools.errors import MachineError
from tools.machine_code.resources import read_resources, tool_path, unreadable


@pytest.mark.parametrize("name", ["add_sm80", "add_sm90", "add_sm100"])
@pytest.mark.slow
def test_a_vector_sum_is_counted_exactly(read: Read, name: str) -> None:
    """1024 sums by 128 threads are 8 elements a thread: four 16-byte loads, two 16-byte stores, eight additions, on every target."""
    kernel = read(name)
    mix = kernel.instructions
    assert (mix["load"], mix["store"], mix["load_bytes_max"], mix["store_bytes_max"]) == (4, 2, 16, 16)
    # sm_100 may pair additions (FADD2), and any target may load a zero with a floating point instruction
    assert 4 <= mix["fp"] <= 9
    assert mix["tensor"] == mix["shared"] == mix["barrier"] == 0
    assert (kernel.spill_bytes, kernel.shared_bytes, kernel.stack_bytes) == (0, 0, 0)


def test_registers_agree_with_the_assembler(read: Read, machine_code: Path) -> None:
    """The register count is the one in the cubin's own resource table."""
    tool = tool_path("cuobjdump")
    printed = subprocess.run([str(tool), "-res-usage", str(machine_code / "add_sm90")], capture_output=True, text=True, check=True).stdout
    assert f"REG:{read('add_sm90').registers} " in printed


def test_unaligned_pointers_narrow_the_accesses(read: Read) -> None:
    """Without a promise of 16-byte alignment a thread loads 4 bytes at a time, in four times as many loads."""
    wide, narrow = read("add_sm90"), read("add_unaligned_sm90")
    assert narrow.instructions["load_bytes_max"] == 4
    assert narrow.instructions["load"] == 4 * wide.instructions["load"]


def test_half_precision_scalars_are_two_bytes(read: Read) -> None:
    """A thread that holds one half-precision element loads and stores 2 bytes."""
    mix = read("add_half_sm90").instructions
    assert (mix["load_bytes_max"], mix["store_bytes_max"]) == (2, 2)


def test_spills_are_the_local_traffic(read: Read) -> None:
    """A row too long for the registers it is allowed spills to local memory, and a short one does not."""
    spilling = read("softmax_spilling_sm90")
    assert spilling.registers == 64
    assert spilling.spill_bytes > 100
    assert spilling.stack_bytes > 100
    assert read("softmax_sm90").spill_bytes == 0


def test_shared_memory_is_what_triton_asks_for(read: Read) -> None:
    """A reduction over four warps takes 16 bytes; the system's kilobyte, which ptxas adds on sm_90, is not the kernel's."""
    assert read("softmax_sm90").shared_bytes == 16


@pytest.mark.parametrize("target", ["sm80", "sm90", "sm100"])
def test_tensor_cores_are_seen_on_every_generation(read: Read, target: str) -> None:
    """HMMA, HGMMA and UTCHMMA are all tensor instructions."""
    assert read(f"matmul_tensor_{target}").instructions["tensor"] > 0


def test_a_product_on_ordinary_cores_is_mostly_floating_point(read: Read) -> None:
    """A float32 product without tensor cores is dominated by multiply-adds."""
    mix = read("matmul_ordinary_sm90").instructions
    counted = sum(count for name, count in mix.items() if not name.endswith("_max"))
    assert mix["tensor"] == 0
    assert mix["fp"] / counted > 0.5


def test_amd_code_objects_tell_their_registers(read: Read) -> None:
    """An AMD kernel's registers and stack are read from its metadata; its instructions are not, and that is said."""
    kernel = read("add_gfx942")
    assert 0 < kernel.registers <= 512
    assert kernel.instructions == {}
    assert "instruction mix" in unreadable("gfx942")[0]
    assert unreadable("sm_90") == ()


def test_amd_spills_are_read(read: Read) -> None:
    """A wave that holds too much spills on AMD too."""
    kernel = read("softmax_spilling_gfx942")
    assert kernel.spill_bytes > 100
    assert kernel.stack_bytes > 100


def test_the_name_chooses_the_kernel(machine_code: Path) -> None:
    """With one kernel in the code any name finds it, and the record bears the name asked for."""
    assert read_resources((machine_code / "add_sm90").read_bytes(), "add_0d1d", "sm_90").name == "add_0d1d"


@pytest.mark.parametrize(
    ("code", "arch"), [(b"no cubin", "sm_90"), (b"", "sm_80"), (b"no code object", "gfx942"), (b"\x7fELF\x02\x01", "gfx942")]
)
def test_damaged_code_is_the_machines_failure(code: bytes, arch: str) -> None:
    """Bytes that are no machine code raise MachineError, which says what could not be read."""
    with pytest.raises(MachineError, match="cannot"):
        read_resources(code, "add", arch)


def test_a_truncated_code_object_is_refused(machine_code: Path) -> None:
    """An AMD code object that was cut off raises MachineError and not an error of the reader."""
    whole = (machine_code / "add_gfx942").read_bytes()
    with pytest.raises(MachineError):
        read_resources(whole[: len(whole) // 2], "add", "gfx942")
