"""The candidates of a soak: doublings of a matrix, of which a fifth hang, crash, leak, fork or fill the disk, and a twentieth are wrong."""

from __future__ import annotations

import collections
import random
from collections.abc import Sequence
from dataclasses import dataclass

PROBLEM = """
import torch

rows = {rows}
columns = {columns}
SMALL_SIZES = [{{"rows": 3, "columns": 65}}]


def double(x):
    return x * 2


def example_inputs():
    return (torch.randn(rows, columns),)
"""

KERNEL = """
import ctypes
import os
import pathlib
import time

import torch
import triton
import triton.language as tl


@triton.jit
def double_kernel(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * factor, mask=mask)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        if type(x) is torch.Tensor:
            {misdeed}
        double_kernel[(triton.cdiv(x.numel(), {block}),)](x, out, x.numel(), {factor}, BLOCK={block})
        return out
"""

MISDEEDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "hang": ("time.sleep(10_000)", ("TIMED_OUT",)),
    "spin": ("while True: pass", ("TIMED_OUT",)),
    "exception": ("raise RuntimeError('no')", ("CRASHED",)),
    "segfault": ("ctypes.string_at(0)", ("CRASHED",)),
    "exit": ("os._exit(0)", ("CRASHED",)),
    "memory": ("self.hoard = [bytearray(1 << 28) for _ in range(10_000)]", ("CRASHED",)),
    "processes": ("while True: os.fork()", ("CRASHED", "TIMED_OUT")),
    "daemon": ("os.fork() or os.setsid() or time.sleep(10_000)", ("PASS", "WRONG", "CRASHED", "TIMED_OUT")),
    "disk": ("[pathlib.Path(str(n)).write_bytes(bytes(1 << 25)) for n in range(100)]", ("CRASHED",)),
    "log": ("[print('x' * 65536) for _ in range(200)]", ("PASS",)),
}
"""What it does, and what may become of it. A process left behind is no offence by itself: it must be gone afterwards."""

ON_A_GPU: dict[str, tuple[str, tuple[str, ...]]] = {
    "gpu memory": ("self.hoard = [torch.empty(1 << 30, dtype=torch.uint8, device=x.device) for _ in range(1000)]", ("CRASHED",)),
    # forking a process that holds a device's context takes milliseconds, and does so in the middle of every timed call
    "daemon": (MISDEEDS["daemon"][0], (*MISDEEDS["daemon"][1], "TIMING_INCONSISTENT")),
    # CUDA reserves more than any limit of one process: what is reserved and never used does no harm
    "memory": (MISDEEDS["memory"][0], ("PASS", "CRASHED", "TIMED_OUT")),
    "gpu spin": ("torch.cuda._sleep(10**15)", ("TIMED_OUT",)),
    "illegal access": (
        # far enough on both sides: a few megabytes beyond a tensor may be mapped, and are then no fault
        "double_kernel[(1 << 20,)](x, out, x.numel() * 10**6, 2.0, BLOCK=1 << 16); torch.cuda.synchronize()",
        ("CRASHED",),
    ),
}

_HANGING_ON_A_GPU = 6
"""Candidates of each kind that end only by the clock."""

_HONEST = ("pass", ("PASS",))
_WRONG = ("pass", ("WRONG",))


@dataclass(frozen=True)
class Job:
    """One candidate and what may become of it."""

    kind: str
    source: str
    expected: tuple[str, ...]

    @property
    def ends_by_the_clock(self) -> bool:
        """Whether it may take its whole time limit."""
        return "TIMED_OUT" in self.expected


def problem_text(*, gpu: bool) -> str:
    """Write the reference's file."""
    size = {"rows": 4096, "columns": 4096} if gpu else {"rows": 16, "columns": 64}
    return PROBLEM.format(**size)


def plan(count: int, seed: int, *, gpu: bool) -> list[Job]:
    """Choose the candidates: a fifth misbehave, a twentieth are wrong, the others are right."""
    chance = random.Random(seed)
    misdeeds = MISDEEDS | (ON_A_GPU if gpu else {})
    hostile = count // 5
    kinds = [(name, *misdeeds[name]) for name in (list(misdeeds) * (hostile // len(misdeeds) + 1))[:hostile]]
    if gpu:
        kinds = _few_hanging(kinds)
    kinds += [("wrong", *_WRONG)] * (count // 20)
    kinds += [("honest", *_HONEST)] * (count - len(kinds))
    chance.shuffle(kinds)
    made = []
    for number, (name, misdeed, expected) in enumerate(kinds):
        factor = 1.999 if name == "wrong" else 2.0
        source = KERNEL.format(misdeed=misdeed, factor=factor, block=(256, 512, 1024)[number % 3])
        made.append(Job(name, f"{source}\n# {number}\n", expected))
    return made


def honest(first: int, count: int) -> list[Job]:
    """Make right candidates beside the planned ones: `first` is a negative number that they are told apart by."""
    source = KERNEL.format(misdeed="pass", factor=2.0, block=128)
    return [Job("honest", f"{source}\n# {first - number}\n", _HONEST[1]) for number in range(count)]


def crashing(number: int) -> Job:
    """Make a candidate beside the planned ones that raises: after it the device is examined by a process that stays."""
    misdeed, expected = MISDEEDS["exception"]
    return Job("exception", f"{KERNEL.format(misdeed=misdeed, factor=2.0, block=128)}\n# {number}\n", expected)


def _few_hanging(kinds: Sequence[tuple[str, str, tuple[str, ...]]]) -> list[tuple[str, str, tuple[str, ...]]]:
    """Leave out most of what ends by the clock alone: each holds the only device for its whole time limit."""
    seen: collections.Counter[str] = collections.Counter()
    kept = []
    for kind in kinds:
        seen[kind[0]] += 1
        if "TIMED_OUT" not in kind[2] or seen[kind[0]] <= _HANGING_ON_A_GPU:
            kept.append(kind)
    return kept
