"""A profile: where the time goes, each figure with its source, and the bottleneck it implies."""

from __future__ import annotations

from enum import StrEnum

from tools.records.base import Record


class FigureSource(StrEnum):
    """How a figure came about."""

    COUNTERS = "counters"
    """Nsight Compute."""
    TIMELINE = "timeline"
    EVENTS = "events"
    """CUDA events, NVML."""
    STATIC = "static"
    """Counted in machine code or in the recorded launches."""
    MODEL = "model"
    """Computed by a model from other figures."""


class Bottleneck(StrEnum):
    """What limits a candidate; typed filter of the knowledge base."""

    DRAM_BANDWIDTH = "dram-bandwidth"
    """Moves little more than it must, near the memory's rate."""
    EXCESS_TRAFFIC = "excess-traffic"
    """Moves far more bytes than it must: intermediates, re-reads."""
    MEMORY_LATENCY = "memory-latency"
    """Memory-bound by its counts, but far below the memory's rate: too little in flight, narrow or scattered accesses."""
    COMPUTE = "compute"
    """Near the arithmetic rate of the units it uses."""
    COMPUTE_UNIT = "compute-unit"
    """Arithmetic-bound on a slower unit than the policy allows (no tensor cores)."""
    REGISTERS = "registers"
    """Spills, or occupancy limited by registers."""
    SHARED_MEMORY = "shared-memory"
    """Occupancy limited by shared memory."""
    PARALLELISM = "parallelism"
    """Too few programs to fill the device."""
    LAUNCH = "launch"
    """Launches and host work take longer than the kernels."""


class Figure(Record):
    """One number about a candidate."""

    name: str
    value: float
    unit: str
    source: FigureSource


class Profile(Record):
    """Evidence about one candidate on one device."""

    candidate: str
    """Candidate id, or `ROOT` for the reference."""
    target: str
    """Hardware sheet name."""
    figures: tuple[Figure, ...]
    bottleneck: Bottleneck
    evidence: str
    """One or two sentences that cite the figures behind the bottleneck."""
    profiler: str = "builtin"
    """Who diagnosed: `builtin`, or the model's name."""
    notes: tuple[str, ...] = ()
    """What could not be read here and why, e.g. Nsight Compute."""

    def figure(self, name: str) -> float | None:
        """Value of the figure called `name`, or None."""
        return next((f.value for f in self.figures if f.name == name), None)
