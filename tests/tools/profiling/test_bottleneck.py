"""One bottleneck by ordered rules, each with the figures that prove it."""

from __future__ import annotations

from typing import Any

import pytest

from tools.cost.occupancy import Limiter, Occupancy
from tools.profiling.bottleneck import Facts, find_bottleneck
from tools.records import Bottleneck

STREAMING = {
    "time_us": 100.0,
    "word": "measured",
    "launches": 1,
    "host_us": 3.0,
    "moved_bytes": 400_000_000,
    "compulsory_bytes": 400_000_000,
    "copy_gbps": 4300.0,
    "flops": 0,
    "unit_tflops": 67.0,
    "allowed_tflops": 330.0,
    "programs": 65_536,
    "sms": 132,
}
"""400 MB in 100 µs: 4000 GB/s, 93 % of a copy's rate."""


def held(fraction: float, limiter: Limiter) -> Occupancy:
    """An occupancy of `fraction`, limited by `limiter`."""
    return Occupancy(blocks_per_sm=1, warps_per_sm=round(64 * fraction), fraction=fraction, limiter=limiter)


SLOW = {"time_us": 300.0}
PRODUCT = {"flops": 5_000_000_000, "moved_bytes": 50_000_000, "compulsory_bytes": 50_000_000}

CASES: list[tuple[dict[str, Any], Bottleneck, str]] = [
    ({}, Bottleneck.DRAM_BANDWIDTH, "4000 GB/s, 93 % of a copy's rate"),
    (
        {**SLOW, "counted": {"dram_percent": 85.0, "dram_read_bytes": 9e8, "dram_write_bytes": 1e8}},
        Bottleneck.EXCESS_TRAFFIC,
        "moves 1000 MB, 2.5 times the compulsory bytes",
    ),
    ({**SLOW, "counted": {"dram_percent": 85.0, "dram_read_bytes": 4e8}}, Bottleneck.DRAM_BANDWIDTH, "85 % of its peak rate"),
    ({**SLOW, "counted": {"dram_percent": 30.0, "tensor_percent": 80.0, "sm_percent": 70.0}}, Bottleneck.COMPUTE, "tensor cores are busy"),
    (
        {**SLOW, "counted": {"dram_percent": 30.0, "stall_barrier": 1.0, "stall_long_scoreboard": 9.5}},
        Bottleneck.MEMORY_LATENCY,
        "waits for global or local memory longest, 9.5 warps",
    ),
    (SLOW, Bottleneck.MEMORY_LATENCY, "31 % of a copy's rate"),
    ({"launches": 20, "host_us": 190.0, "time_us": 250.0}, Bottleneck.LAUNCH, "20 launches takes about 190 µs, 76 %"),
    ({"compulsory_bytes": 100_000_000}, Bottleneck.EXCESS_TRAFFIC, "400 MB where 100 MB are compulsory (4.0 times)"),
    ({**SLOW, "programs": 16}, Bottleneck.PARALLELISM, "16 programs for 132 multiprocessors"),
    ({**SLOW, "occupancy": held(0.25, "registers")}, Bottleneck.REGISTERS, "Registers hold the heaviest kernel to 25 % occupancy"),
    ({**SLOW, "occupancy": held(0.25, "shared memory")}, Bottleneck.SHARED_MEMORY, "Shared memory hold"),
    ({**SLOW, "occupancy": held(0.75, "registers")}, Bottleneck.MEMORY_LATENCY, "nor occupancy"),
    ({"spill_share": 0.2, "spill_bytes": 512}, Bottleneck.REGISTERS, "spills 512 bytes, about 20 %"),
    (PRODUCT, Bottleneck.COMPUTE_UNIT, "peak of 67 TFLOP/s, where the policy allows 330"),
    ({**PRODUCT, "allowed_tflops": 67.0}, Bottleneck.COMPUTE, "75 % of their unit's peak of 67"),
    ({**PRODUCT, **SLOW, "allowed_tflops": 67.0, "occupancy": held(0.1, "registers")}, Bottleneck.REGISTERS, "25 % of their unit's"),
    ({**PRODUCT, **SLOW, "allowed_tflops": 67.0}, Bottleneck.COMPUTE, "25 % of their unit's"),
]


@pytest.mark.parametrize(("changed", "bottleneck", "cited"), CASES)
def test_each_rule_names_its_bottleneck_and_cites_its_figures(changed: dict[str, Any], bottleneck: Bottleneck, cited: str) -> None:
    """A streaming kernel near the copy rate, changed in one respect, is told by that respect."""
    found, evidence = find_bottleneck(Facts(**{**STREAMING, **changed}))
    assert found is bottleneck
    assert cited in evidence
    assert evidence.endswith(".")


def test_estimated_times_are_called_estimated() -> None:
    """Evidence over a model's time says so."""
    _, evidence = find_bottleneck(Facts(**{**STREAMING, "word": "estimated"}))
    assert "estimated 100.0 µs" in evidence
