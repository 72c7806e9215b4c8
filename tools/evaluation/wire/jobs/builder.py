"""What the builder is told, and what it answers."""

from __future__ import annotations

from typing import Literal

from tools.evaluation.wire.launch_plan import LaunchPlan
from tools.records import ABI, HardwareSheet, Launch, Record


class BuilderJob(Record):
    """All that a builder is told."""

    abi: ABI
    source: str
    sheet: HardwareSheet
    others: tuple[ABI, ...] = ()
    """Of other sizes that will be run: their kernels are compiled too, where their host code can be followed."""
    launchers: bool = False
    """Compile what launches the kernels as well: they will run on this machine's GPU."""
    misuses: bool = False
    """Also try uses that the candidate was not made for."""


class KernelBinary(Record):
    """One compiled kernel."""

    name: str
    code: str
    """Machine code, base64."""
    shared_bytes: int


class BuildAnswer(Record):
    """What came of it; from an untrusted process, so evidence for estimates and never for a verdict of PASS."""

    status: Literal["built", "failed", "opaque"]
    """`opaque`: the host code needs real values, so nothing is known of its launches."""
    reason: str = ""
    """The shortest telling part of what failed."""
    launches: tuple[Launch, ...] = ()
    packing: tuple[Launch, ...] = ()
    """Of the step that packs weights."""
    kernels: tuple[KernelBinary, ...] = ()
    short_floats: tuple[str, ...] = ()
    """Dtypes of its kernels that Triton's interpreter does not know, by torch's names: bfloat16 and those of float8."""
    notes: tuple[str, ...] = ()
    plan: LaunchPlan | None = None
    """How to do the same without the candidate's host code; None where its host code does not allow that."""
    unsealable: str = ""
    """Why there is no plan."""
    taken: tuple[str, ...] = ()
    """Wrong uses for which it launches a kernel."""
    cache: str = ""
    """Packed cache of the compiler, for the candidate's own runners."""
