"""What the compiler gave one kernel on one target: registers, spills, shared memory, instruction mix, without running it."""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

from tools.errors import MachineError
from tools.machine_code.amdgpu import kernel_metadata
from tools.machine_code.sass import count_mix, parse_functions, parse_usage
from tools.records import KernelResources
from tools.scratch import PREFIX, scratch

T = TypeVar("T")

_TIMEOUT_S = 60
_RESERVED_SHARED = 1024
"""Bytes of a block's shared memory that the system keeps from compute capability 9.0 on, and that ptxas adds to a kernel's own.

(CUDA Programming Guide, compute capability 9.x, shared memory; seen as `SHARED:1024` on kernels that declare none.)
"""


def read_resources(code: bytes, name: str, arch: str, shared_bytes: int = 0) -> KernelResources:
    """Read what kernel `name` uses from its machine code: a cubin for `sm_NN`, an AMD code object for `gfxNNN`.

    `shared_bytes` is the shared memory that Triton asks for at launch (`metadata.shared` of the compiled kernel): the
    machine code does not hold it. `unreadable(arch)` says what cannot be read. A tool that is missing or fails, or code
    without that kernel, raises MachineError.
    """
    if arch.startswith("gfx"):
        return _read_amd(code, name, arch, shared_bytes)
    text = _dump(code)
    usages, listings = parse_usage(text), parse_functions(text)
    usage, mix = _kernel(usages, name), count_mix(_kernel(listings, name))
    static = usage.shared_bytes
    if int(arch.removeprefix("sm_").rstrip("abcdef")) >= 90 and static >= _RESERVED_SHARED:
        static -= _RESERVED_SHARED
    return KernelResources(
        name=name,
        arch=arch,
        registers=usage.registers,
        spill_bytes=mix.local_bytes,
        shared_bytes=static + shared_bytes,
        stack_bytes=usage.stack_bytes,
        instructions=mix.instructions,
    )


def unreadable(arch: str) -> tuple[str, ...]:
    """Say, one sentence each, what `read_resources` leaves empty for `arch`; meant for an evaluation's notes."""
    if arch.startswith("gfx"):
        return (f"The instruction mix and the access widths of {arch} kernels are not read: no AMD disassembler ships with Triton.",)
    return ()


def tool_path(name: str) -> Path:
    """Find a CUDA binary tool: the one in the installed Triton first (nothing is imported for it), then the one on PATH."""
    spec = find_spec("triton")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder) / "backends" / "nvidia" / "bin" / name
        if path.is_file():
            return path
    if found := shutil.which(name):
        return Path(found)
    raise MachineError(f"{name} is neither in the installed Triton nor on PATH.", "Install a Linux wheel of triton, or the CUDA toolkit.")


def _dump(cubin: bytes) -> str:
    tool, disassembler = tool_path("cuobjdump"), tool_path("nvdisasm")
    environment = {**os.environ, "NVDISASM_PATH": str(disassembler)}
    with scratch(f"{PREFIX}code-") as folder:
        path = folder / "kernel.cubin"
        path.write_bytes(cubin)
        command = [str(tool), "-res-usage", "-sass", str(path)]
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise MachineError(f"{tool} did not run: {error}.", "Check the installed Triton wheel.") from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()[:300]
        raise MachineError(f"cuobjdump cannot read the cubin: {said}", "Use a Triton whose tools know this target.")
    return done.stdout


def _kernel(found: dict[str, T], name: str) -> T:
    if name in found:
        return found[name]
    if len(found) == 1:
        return next(iter(found.values()))
    raise MachineError(f"The compiled code has no kernel {name!r}, only: {', '.join(found) or 'none'}.", "Name one of these.")


def _read_amd(code: bytes, name: str, arch: str, shared_bytes: int) -> KernelResources:
    kernel = _kernel(kernel_metadata(code), name)
    return KernelResources(
        name=name,
        arch=arch,
        registers=kernel[".vgpr_count"],
        # a register of a spilled lane takes 4 bytes
        spill_bytes=4 * kernel.get(".vgpr_spill_count", 0),
        shared_bytes=kernel[".group_segment_fixed_size"] + shared_bytes,
        stack_bytes=kernel[".private_segment_fixed_size"],
        instructions={},
    )
