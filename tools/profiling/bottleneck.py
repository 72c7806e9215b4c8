"""Names one bottleneck from the facts of a call, by rules in a fixed order: the first that holds, with the sentence that proves it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from tools.cost.occupancy import Occupancy
from tools.records import Bottleneck

LAUNCH_SHARE = 0.5
"""From this part of the time on, launching is what the call does."""
SPILL_SHARE = 0.05
"""From this part of the heaviest kernel's modelled time on, spills come before anything else."""
UNIT_RATIO = 1.5
"""A unit counts as slower than allowed where the allowed one is this many times faster."""
NEAR_RATE = 0.6
"""Products at this share of their unit's peak are near it: libraries reach 0.75 (`rates.LIBRARY_MATMUL_SHARE`)."""
NEAR_COPY = 0.75
"""Traffic at this share of a copy's rate is near it."""
EXCESS = 1.5
"""From this many times the compulsory bytes on, traffic is in excess."""
NEAR_COUNTED = 75.0
"""A unit that Nsight Compute counts busy for this share of the time, percent, is what limits."""
LOW_OCCUPANCY = 0.5
"""Up to this occupancy, the resource that limits it is worth naming."""


STALLS = {
    "long_scoreboard": "global or local memory",
    "short_scoreboard": "shared memory or special functions",
    "barrier": "other warps at a barrier",
    "math_pipe_throttle": "an arithmetic unit",
    "lg_throttle": "the queue of global memory instructions",
    "mio_throttle": "the queue of shared memory instructions",
    "wait": "its own last instruction's fixed latency",
}
"""Nsight Compute's reasons of a stall, in words (Kernel Profiling Guide, warp stall reasons)."""


class Facts(NamedTuple):
    """What the rules look at; times in microseconds."""

    time_us: float
    word: str
    """`measured` or `estimated`: how `time_us` came about."""
    launches: int
    host_us: float
    """Time that issuing the launches takes."""
    moved_bytes: int
    compulsory_bytes: int
    copy_gbps: float
    flops: int
    """Product flops of the call."""
    unit_tflops: float
    """Peak of the unit on which the products run."""
    allowed_tflops: float
    """Peak of the fastest unit that the precision policy allows."""
    spill_share: float = 0.0
    """Of the heaviest kernel's modelled time."""
    spill_bytes: int = 0
    programs: int = 0
    """Grid of the heaviest kernel; 0 where not known."""
    sms: int = 0
    occupancy: Occupancy | None = None
    """Of the heaviest kernel."""
    counted: Mapping[str, float] = MappingProxyType({})
    """Hardware counters by the name of their figure; empty where none were read."""

    @property
    def launch_share(self) -> float:
        """Part of the time that issuing the launches takes."""
        return self.host_us / self.time_us

    @property
    def traffic_ratio(self) -> float:
        """Bytes moved over compulsory bytes."""
        return self.moved_bytes / max(self.compulsory_bytes, 1)

    @property
    def achieved_gbps(self) -> float:
        """Bytes moved over the time, 1e9 bytes a second."""
        return self.moved_bytes / self.time_us / 1e3

    @property
    def copy_share(self) -> float:
        """Achieved bandwidth over a copy's."""
        return self.achieved_gbps / self.copy_gbps

    @property
    def compute_share(self) -> float:
        """Product flops over what the unit in use could do in the time."""
        return self.flops / self.time_us / 1e6 / self.unit_tflops

    @property
    def arithmetic_bound(self) -> bool:
        """Whether the products take longer than the bytes, each at the best rate of what is in use."""
        return self.flops / self.unit_tflops / 1e6 > self.moved_bytes / self.copy_gbps / 1e3


def find_bottleneck(facts: Facts) -> tuple[Bottleneck, str]:
    """Return the first bottleneck whose rule holds, and the evidence; the rules are tried in the order of `RULES`."""
    for bottleneck, rule in RULES:
        if evidence := rule(facts):
            return bottleneck, evidence
    if stalled := _longest_stall(facts):
        return Bottleneck.MEMORY_LATENCY, f"{_traffic(facts)}; {stalled}."
    known = "neither traffic in excess, nor occupancy, nor too few programs explains it"
    why = known if facts.occupancy else "there is no excess traffic to explain it, and its kernels were not read"
    return Bottleneck.MEMORY_LATENCY, f"{_traffic(facts)}; {why}: too little is in flight, or accesses are narrow or scattered."


def _launch(facts: Facts) -> str:
    if facts.launch_share < LAUNCH_SHARE:
        return ""
    return (
        f"Issuing {facts.launches} launches takes about {facts.host_us:.0f} µs, "
        f"{_percent(facts.launch_share)} of the {facts.word} {facts.time_us:.1f} µs."
    )


def _spills(facts: Facts) -> str:
    if facts.spill_share < SPILL_SHARE:
        return ""
    return f"Each thread of the heaviest kernel spills {facts.spill_bytes} bytes, about {_percent(facts.spill_share)} of its modelled time."


def _slow_unit(facts: Facts) -> str:
    if not facts.arithmetic_bound or facts.allowed_tflops < UNIT_RATIO * facts.unit_tflops:
        return ""
    return (
        f"{facts.flops:.3g} flops of products run on units with a peak of {facts.unit_tflops:.0f} TFLOP/s, "
        f"where the policy allows {facts.allowed_tflops:.0f} TFLOP/s."
    )


def _counted_arithmetic(facts: Facts) -> str:
    busy = {name: facts.counted.get(f"{name}_percent", 0.0) for name in ("tensor", "sm")}
    unit, share = max(busy.items(), key=lambda item: item[1])
    if share < NEAR_COUNTED or share <= facts.counted.get("dram_percent", 0.0):
        return ""
    words = {"tensor": "The tensor cores are", "sm": "The busiest unit of the multiprocessors is"}
    return f"{words[unit]} busy for {share:.0f} % of the time by the hardware's own counters."


def _counted_excess(facts: Facts) -> str:
    moved = facts.counted.get("dram_read_bytes", 0.0) + facts.counted.get("dram_write_bytes", 0.0)
    ratio = moved / max(facts.compulsory_bytes, 1)
    return f"{_counted_memory(facts)} {ratio:.1f} times the compulsory bytes." if ratio >= EXCESS and _is_near_dram(facts) else ""


def _counted_dram(facts: Facts) -> str:
    return f"{_counted_memory(facts)} near all that it can." if _is_near_dram(facts) else ""


def _is_near_dram(facts: Facts) -> bool:
    return facts.counted.get("dram_percent", 0.0) >= NEAR_COUNTED


def _counted_memory(facts: Facts) -> str:
    moved = facts.counted.get("dram_read_bytes", 0.0) + facts.counted.get("dram_write_bytes", 0.0)
    share = facts.counted["dram_percent"]
    return f"By the hardware's own counters memory is at {share:.0f} % of its peak rate and moves {moved / 1e6:.4g} MB,"


def _longest_stall(facts: Facts) -> str:
    stalls = {name.removeprefix("stall_"): value for name, value in facts.counted.items() if name.startswith("stall_")}
    if not stalls:
        return ""
    reason = max(stalls, key=lambda name: stalls[name])
    return f"a warp waits for {STALLS.get(reason, reason)} longest, {stalls[reason]:.1f} warps for each instruction issued (stall_{reason})"


def _near_rate(facts: Facts) -> str:
    return _products(facts) if facts.arithmetic_bound and facts.compute_share >= NEAR_RATE else ""


def _few_programs(facts: Facts) -> str:
    if not 0 < facts.programs < facts.sms:
        return ""
    return f"The heaviest kernel has {facts.programs} programs for {facts.sms} multiprocessors; {_traffic(facts)}."


def _excess(facts: Facts) -> str:
    if facts.arithmetic_bound or facts.traffic_ratio < EXCESS:
        return ""
    return (
        f"It moves {facts.moved_bytes / 1e6:.4g} MB where {facts.compulsory_bytes / 1e6:.4g} MB are compulsory "
        f"({facts.traffic_ratio:.1f} times); {_traffic(facts)}."
    )


def _near_copy(facts: Facts) -> str:
    if facts.arithmetic_bound or facts.copy_share < NEAR_COPY:
        return ""
    return f"{_traffic(facts)}, with {facts.traffic_ratio:.2f} times the compulsory bytes."


def _registers(facts: Facts) -> str:
    return _limited(facts, "registers")


def _shared(facts: Facts) -> str:
    return _limited(facts, "shared memory")


def _limited(facts: Facts, limiter: str) -> str:
    held = facts.occupancy
    if held is None or held.limiter != limiter or held.fraction > LOW_OCCUPANCY:
        return ""
    told = _products(facts) if facts.arithmetic_bound else _traffic(facts) + "."
    return f"{limiter.capitalize()} hold the heaviest kernel to {_percent(held.fraction)} occupancy; {told}"


def _far_from_rate(facts: Facts) -> str:
    return _products(facts) if facts.arithmetic_bound else ""


RULES = (
    (Bottleneck.LAUNCH, _launch),
    (Bottleneck.REGISTERS, _spills),
    (Bottleneck.COMPUTE_UNIT, _slow_unit),
    (Bottleneck.COMPUTE, _counted_arithmetic),
    (Bottleneck.EXCESS_TRAFFIC, _counted_excess),
    (Bottleneck.DRAM_BANDWIDTH, _counted_dram),
    (Bottleneck.COMPUTE, _near_rate),
    (Bottleneck.PARALLELISM, _few_programs),
    (Bottleneck.EXCESS_TRAFFIC, _excess),
    (Bottleneck.DRAM_BANDWIDTH, _near_copy),
    (Bottleneck.REGISTERS, _registers),
    (Bottleneck.SHARED_MEMORY, _shared),
    (Bottleneck.COMPUTE, _far_from_rate),
)
"""Each rule gives its evidence, or nothing where it does not hold; where none holds, it is memory latency."""


def _traffic(facts: Facts) -> str:
    return (
        f"{facts.moved_bytes / 1e6:.4g} MB in {facts.word} {facts.time_us:.1f} µs are {facts.achieved_gbps:.0f} GB/s, "
        f"{_percent(facts.copy_share)} of a copy's rate"
    )


def _products(facts: Facts) -> str:
    return (
        f"{facts.flops:.3g} flops of products in {facts.word} {facts.time_us:.1f} µs are {_percent(facts.compute_share)} "
        f"of their unit's peak of {facts.unit_tflops:.0f} TFLOP/s."
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
