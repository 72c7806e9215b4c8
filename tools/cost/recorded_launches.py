"""What the recorded launches of a call say before any model: which kernel each ran, which do products, what each must move."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import NamedTuple

from tools.hardware.rates import FLOAT_FRACTION, L2_RESIDENT, PRODUCTS, operator_family
from tools.machine_code.sass import CLASSES
from tools.records import ITEM_BYTES, HardwareSheet, KernelResources, Launch, OperatorFamily, Problem


class Shared(NamedTuple):
    """One launch with its part of the problem's work."""

    launch: Launch
    kernel: KernelResources | None
    """None for a library's kernel, and where the compiler's output was not read."""
    family: OperatorFamily | None
    """Of a library's kernel; None for a Triton kernel."""
    flops: float
    """Its part of the problem's product flops, each time that it is launched."""
    l2_bytes: int
    """Of `launch.nbytes`, what the launch before left in the L2."""


def share_work(
    problem: Problem, launches: tuple[Launch, ...], kernels: tuple[KernelResources, ...], sheet: HardwareSheet
) -> tuple[Shared, ...]:
    """Pair each launch with its kernel and give it its part of the product flops and of the L2's hits.

    Flops go to the launches that do products (a library operator of such a family, a Triton kernel with tensor
    instructions; where there is none, kernels of mostly floating point instructions), in proportion to the square root
    of the product of their three largest tensors, which for C = A B is exactly M N K. Where no launch looks like one,
    the largest gets all.
    """
    paired = _pair(launches, kernels)
    weights = _product_weights(paired)
    if not any(weights) and launches:
        largest = max(range(len(launches)), key=lambda i: launches[i].nbytes)
        weights[largest] = 1.0
    whole = sum(weight * max(1, launch.replayed) for weight, launch in zip(weights, launches, strict=True)) or 1.0
    hits = _l2_hits(launches, sheet)
    return tuple(
        Shared(launch, kernel, _library_family(launch), problem.work.matmul_flops * weight / whole, hit)
        for (launch, kernel), weight, hit in zip(paired, weights, hits, strict=True)
    )


def _pair(launches: tuple[Launch, ...], kernels: tuple[KernelResources, ...]) -> list[tuple[Launch, KernelResources | None]]:
    """Match by name; specialisations of one name are matched in the order in which they first ran."""
    by_name: dict[str, list[KernelResources]] = {}
    for kernel in kernels:
        by_name.setdefault(kernel.name, []).append(kernel)
    seen: dict[str, list[str]] = {}
    paired: list[tuple[Launch, KernelResources | None]] = []
    for launch in launches:
        forms = seen.setdefault(launch.name, [])
        form = repr((sorted(launch.constants.items(), key=str), launch.num_warps, launch.num_stages, [t.dtype for t in launch.tensors]))
        if form not in forms:
            forms.append(form)
        found = by_name.get(launch.name, []) if launch.kind == "triton" else []
        paired.append((launch, found[min(forms.index(form), len(found) - 1)] if found else None))
    return paired


def _library_family(launch: Launch) -> OperatorFamily | None:
    return operator_family(launch.name) if launch.kind == "library" else None


def _product_weights(paired: list[tuple[Launch, KernelResources | None]]) -> list[float]:
    """Weigh the launches that do products; floating point ones count only where none uses tensor cores or a library."""
    does = [
        operator_family(launch.name) in PRODUCTS if launch.kind == "library" else kernel is not None and uses_tensor(kernel)
        for launch, kernel in paired
    ]
    if not any(does):
        does = [kernel is not None and mostly_float(kernel) for _, kernel in paired]
    return [_volume(launch) if yes else 0.0 for yes, (launch, _) in zip(does, paired, strict=True)]


def _volume(launch: Launch) -> float:
    sizes = sorted((math.prod(t.shape) for t in launch.tensors), reverse=True)[:3]
    return math.sqrt(math.prod(sizes)) if sizes else 1.0


def mostly_float(kernel: KernelResources) -> bool:
    """Whether most of the machine code is floating point arithmetic, as in sums of products on the ordinary cores."""
    total = sum(kernel.instructions.get(name, 0) for name in CLASSES)
    return total > 0 and kernel.instructions.get("fp", 0) / total >= FLOAT_FRACTION


def uses_tensor(kernel: KernelResources) -> bool:
    """Whether the machine code has tensor-core instructions."""
    return kernel.instructions.get("tensor", 0) > 0


def _l2_hits(launches: tuple[Launch, ...], sheet: HardwareSheet) -> list[int]:
    """Bytes of each launch that the launch before left in the L2: the largest tensor both name, if it fits.

    Records name no addresses, so a tensor is known by its size and dtype; one stream and that a launch reads what the
    one before wrote are assumed.
    """
    fits = L2_RESIDENT * sheet.l2_mib * 2**20
    hits = [0] * min(len(launches), 1)
    for before, launch in itertools.pairwise(launches):
        common = _sizes(before) & _sizes(launch)
        largest = max(common, default=0)
        hits.append(min(largest, launch.nbytes) if largest <= fits else 0)
    return hits


def _sizes(launch: Launch) -> Counter[int]:
    return Counter(math.prod(t.shape) * ITEM_BYTES.get(t.dtype, 4) for t in launch.tensors)
