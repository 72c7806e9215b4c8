"""What Inductor wrote for a reference, as text and numbers."""

from __future__ import annotations

from typing import Literal

from tools.records import Record

Launcher = dict[str, int]
"""Block sizes by name, with `num_warps` and `num_stages`."""


class RefusedError(Exception):
    """What Inductor wrote, or would have to write, cannot be a candidate; the message is one line that says why."""


class WrittenKernel(Record):
    """One Triton kernel."""

    source: str
    """Its file as Inductor wrote it: imports, one decorator with the heuristics' words, one function."""
    grid: str
    """How its grid follows from sizes and blocks: a name of Inductor's, e.g. `Grid1D`."""
    launchers: tuple[Launcher, ...]
    """Configurations that Inductor would choose among by timing; the first is its own guess."""
    programs: tuple[int, ...] = ()
    """Programs along each axis under the first configuration, where the kernel itself fixes them: several kernels in one."""


class Operand(Record):
    """What one argument of the wrapper is."""

    kind: Literal["input", "parameter"]
    name: str
    """An argument's name, or a path such as `net.0.weight`."""
    shape: tuple[int, ...]


class Program(Record):
    """What Inductor wrote for one size of the problem."""

    code: str
    """The wrapper: kernels as strings, and a function `call` that allocates, launches and calls the library."""
    kernels: dict[str, WrittenKernel]
    operands: tuple[Operand, ...]
    """The wrapper's arguments, in order."""


class Written(Record):
    """What Inductor wrote for a problem."""

    torch: str
    """Version of torch whose Inductor it was."""
    programs: tuple[Program, ...] = ()
    """The problem's own size first, then its small variants."""
    outputs: Literal["one", "tuple", "list"] = "one"
    """What the reference returns."""
    refused: str = ""
    """Why there is nothing: one line."""
