"""What one launch does, as far as a schedule tells before anything is compiled; the cost model says how long that takes."""

from __future__ import annotations

from typing import NamedTuple


class LaunchWork(NamedTuple):
    """One launch in figures that a schedule fixes; totals are over all programs."""

    programs: int
    warps: int
    dram_bytes: float
    """What must come from and go to memory."""
    l2_bytes: float
    """What leaves the L1: reads of neighbouring programs again, and partly used sectors whole."""
    flight_bytes: float
    """Bytes that one program has on their way at once."""
    steps: float
    """Steps of the loop that one program walks, one after the other; 1 without a loop."""
    lane_work: float
    """Instructions of all lanes, 32 to an issue."""
    registers: float = 32.0
    """A thread's; beyond the device's limit they spill."""
    shared_bytes: float = 0.0
    exchange_cycles: float = 0.0
    """Cycles of a multiprocessor's shared memory, or of its L1, that one step of one program costs."""
    barriers: float = 0.0
    """Barriers of one step."""
    tail_work: float = 0.0
    """Of `lane_work`, what programs with products do when these are done."""
    product_flops: float = 0.0
    product_tflops: float = 0.0
    """Rate that the tile's shape allows."""
    additions: float = 0.0
    """Sectors that the L2 adds to: those that fall into one line wait for one another."""
    addition_lines: float = 0.0
    """Lines of memory that these fall into."""
    serial: bool = False
    """Whether a program's loads, products and writing leave one another idle: only another program on its multiprocessor fills the gaps."""
    independent: float = 4.0
    """Instructions of a thread at a time that do not wait for one another."""
    wait_us: float = 0.0
    """What a warp waits in a step for products that it has just asked for; with 0 operands are ready, and products go on by themselves."""
    ahead: bool = True
    """Whether a program with products has its next loads on their way meanwhile, so that few of its warps keep memory busy."""
    early_us: float = 0.0
    """What it is done with before the launch ahead of it has ended."""
