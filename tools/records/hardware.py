"""A hardware sheet: the figures of one device that plans, estimates and floors rest on."""

from __future__ import annotations

from typing import Literal

from tools.records.base import Record


class HardwareSheet(Record):
    """Datasheet and measured figures of one device; rates are dense (no sparsity)."""

    name: str
    """Name on the command line, e.g. `h200`."""
    title: str
    """As the driver reports it, e.g. `NVIDIA H200`."""
    backend: Literal["cuda", "hip"]
    arch: str
    """Compile target: `sm_90`, `gfx942`, …"""
    generation: str
    """Architecture name, e.g. `hopper`: typed filter of the knowledge base."""
    warp_size: int
    sms: int
    """Streaming multiprocessors, or compute units."""
    clock_mhz: float
    """Boost clock."""
    memory_gb: float
    memory_gbps: float
    """Peak DRAM bandwidth, 1e9 bytes a second, from the datasheet."""
    copy_gbps: float | None = None
    """Measured device-to-device copy, bytes read and written; None where not measured."""
    l2_mib: float
    shared_kib_per_sm: float
    shared_kib_per_block: float
    registers_per_sm: int
    max_threads_per_sm: int
    max_registers_per_thread: int = 255
    fp64_tflops: float
    fp32_tflops: float
    """On the ordinary cores."""
    tf32_tflops: float | None
    fp16_tflops: float | None
    """On tensor cores, fp32 accumulation."""
    bf16_tflops: float | None
    launch_us: float = 3.0
    """Host-side time between the starts of consecutive kernels, used by estimates only."""
    sources: dict[str, str]
    """Where each figure comes from: field name to document, page or measurement."""
