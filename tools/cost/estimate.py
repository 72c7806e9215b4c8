"""An analytic model of how long a call takes on a device, from its launches and its machine code. Nothing is timed.

A call is its launches in order: `CALL_US` once, and for each launch the larger of the shortest launch interval
(`HardwareSheet.launch_us`) and its own time on the device; or, where that is more, the host's time for all of them,
`HOST_US` for a library's and `GENERATED_HOST_US` for a Triton kernel's, less the evaluator's `HEAD_START_US`. A launch's
time on the device is

    KERNEL_US + max(memory, compute, issue) + spills

* memory: the bytes of the launch's tensors, each once, at the copy rate, plus what the tiles of a product read again
  through the L2 (flops / 2 · (1/BLOCK_M + 1/BLOCK_N) elements, where the launch names both), at the L2's rate: the larger
  of the two. The copy rate is cut by access width (`WIDTH_SHARE`), by what the running multiprocessors can take
  (`SM_BYTES_PER_CLOCK`) and by Little's law: bytes in flight / `LATENCY_US`. In flight are, for each resident thread, its
  static global loads times their width, no more than its registers and shared memory can hold. Full waves run at
  the rate of a full device, the rest at the rate of what is left. The largest tensor that two launches in a row share
  is read from the L2 where it fits into `L2_RESIDENT` of it.
* compute: product flops at the rate of the units the machine code uses (tensor cores as the policy allows them, a third
  for exact float32; else the ordinary cores) times the share that Triton kernels or libraries reach, and
  pointwise flops at the fp32 rate; both stretched where programs do not divide evenly among multiprocessors.
* issue: static warp instructions of all programs at `ISSUES_PER_CLOCK`, once for each pass over the static accesses, at their widest,
  that it takes a program to move its part of the bytes: so a loop's arithmetic counts as often as its loads do. What is
  read again, and loops without accesses, count once too few: this is a lower bound.
* spills: local memory traffic of all threads at the L2's rate.

A library's launch has no machine code here: memory at the share of its family (`EAGER_SHARE`), products at
`LIBRARY_MATMUL_SHARE` or `LIBRARY_CONVOLUTION_SHARE`. The reference is modelled in the same way, its operators each a
launch with an equal part of the bytes and of the product flops; steps of a recurrent layer wait for one another, `RECURRENT_STEP_US` each.
Not modelled: bank conflicts, divergence, cache hits within
a launch, clocks under load, what a shape does to a library's kernel. `tools.hardware.rates` has every constant with its source
or the word assumption.

Checked against eager times of KernelBench v0.2, levels 1 and 2, on an H200 (2026-11-20, torch 2.11, convolutions in
TF32): 52 problems led by products are estimated at 0.96 of the measured time, 42 led by pointwise operators at 0.85 (geometric
means; rank correlations 0.87 and 0.85), 72 led by convolutions at 0.59 (0.67). Far too low, by 3 to 20 times, are 3-D
and transposed convolutions and norms over one huge row.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tools.cost.occupancy import Occupancy, occupancy
from tools.cost.recorded_launches import Shared, share_work, uses_tensor
from tools.cost.roofline import bytes_us, floor_us, flops_us, loosest, matmul_dtype
from tools.hardware import peak_tflops, rates
from tools.machine_code.sass import CLASSES
from tools.records import ITEM_BYTES, Estimate, HardwareSheet, KernelResources, Launch, OperatorFamily, Problem

MODEL = "kernelwright-analytic 4"
"""Name and version: two estimates compare only where this is equal. Raise it with every change of the model or its constants."""


class LaunchCost(NamedTuple):
    """The model's view of one launch; microseconds."""

    work: Shared
    occupancy: Occupancy | None
    """None where the machine code was not read."""
    memory_us: float
    compute_us: float
    issue_us: float
    spill_us: float

    @property
    def device_us(self) -> float:
        """Time on the device."""
        return rates.KERNEL_US + max(self.memory_us, self.compute_us, self.issue_us) + self.spill_us

    @property
    def whole_us(self) -> float:
        """Time on the device of all its launches in a call."""
        return self.device_us * self.times

    @property
    def times(self) -> int:
        """How often it is launched in a call."""
        return max(1, self.work.launch.replayed)


def estimate_time(
    problem: Problem,
    launches: tuple[Launch, ...],
    kernels: tuple[KernelResources, ...],
    sheet: HardwareSheet,
    packing: tuple[Launch, ...] = (),
) -> Estimate:
    """Estimate how long the recorded launches take on `sheet`, beside the reference by the same model; apart from them those that pack."""
    found = _estimate(problem, call_us(launch_costs(problem, launches, kernels, sheet), sheet), sheet)
    if not packing:
        return found
    # passes over weights: none of the problem's operations is theirs
    idle = problem.model_copy(update={"work": problem.work.model_copy(update={"matmul_flops": 0, "pointwise_flops": 0})})
    return found.model_copy(update={"packing_us": call_us(launch_costs(idle, packing, kernels, sheet), sheet)})


def estimate_reference(problem: Problem, sheet: HardwareSheet) -> Estimate:
    """Estimate how long eager execution of the reference takes on `sheet`; at several shapes, a call on average."""
    if problem.shapes:
        found = [(shape.weight, estimate_reference(problem.at(shape), sheet)) for shape in problem.shapes]
        mean_us = sum(weight * one.eager_us for weight, one in found) / sum(weight for weight, _ in found)
        return found[0][1].model_copy(update={"candidate_us": mean_us, "eager_us": mean_us, "floor_us": floor_us(problem, sheet)})
    return _estimate(problem, call_us(reference_costs(problem, sheet), sheet), sheet)


def launch_costs(
    problem: Problem, launches: tuple[Launch, ...], kernels: tuple[KernelResources, ...], sheet: HardwareSheet
) -> tuple[LaunchCost, ...]:
    """Model each launch by itself."""
    shared = share_work(problem, launches, kernels, sheet)
    moved = sum(launch.nbytes * max(1, launch.replayed) for launch in launches) or 1
    return tuple(_cost(problem, work, problem.work.pointwise_flops * work.launch.nbytes / moved, sheet) for work in shared)


def reference_costs(problem: Problem, sheet: HardwareSheet) -> tuple[LaunchCost, ...]:
    """Model each operator of eager execution as a launch with an equal part of the bytes; products share their flops alike."""
    work, count = problem.work, len(problem.work.operators)
    families = [rates.operator_family(name) for name in work.operators]
    products = sum(family in rates.PRODUCTS for family in families) or count
    between = (work.eager_bytes - problem.abi.compulsory_bytes) / (2 * (count - 1)) if count > 1 else 0.0
    hit = int(between) if 0 < between <= rates.L2_RESIDENT * sheet.l2_mib * 2**20 else 0
    recurrent = families.count(OperatorFamily.RECURRENT)
    costs = []
    for index, (name, family) in enumerate(zip(work.operators, families, strict=True)):
        does = family in rates.PRODUCTS or products == count
        launch = Launch(kind="library", name=name, nbytes=work.eager_bytes // count)
        part = Shared(launch, None, family, work.matmul_flops / products if does else 0.0, hit if index else 0)
        cost = _cost(problem, part, work.pointwise_flops / count, sheet)
        waited = rates.RECURRENT_STEP_US * work.recurrent_steps / recurrent if family is OperatorFamily.RECURRENT else 0.0
        costs.append(cost._replace(issue_us=max(cost.issue_us, waited)))
    return tuple(costs)


def call_us(costs: tuple[LaunchCost, ...], sheet: HardwareSheet) -> float:
    """Time of a whole call: launches one after the other, or the host where it cannot keep up."""
    on_device = sum(max(sheet.launch_us, cost.device_us) * cost.times for cost in costs)
    return rates.CALL_US + max(on_device, host_us(issued(costs), sheet, generated=generated_launches(costs)))


def host_us(launches: int, sheet: HardwareSheet, generated: int = 0) -> float:
    """Time by which issuing `launches`, `generated` of which are Triton kernels, holds a timed call up: all beyond the head start."""
    return max(launches * sheet.launch_us, issuing_us(launches, generated) - rates.HEAD_START_US)


def issuing_us(launches: int, generated: int = 0) -> float:
    """Time that the host takes to issue `launches`, `generated` of which are Triton kernels."""
    return (launches - generated) * rates.HOST_US + generated * rates.GENERATED_HOST_US


def issued(costs: tuple[LaunchCost, ...]) -> int:
    """Count what the host issues: a graph, whatever it holds, is one."""
    replayed = [bool(cost.work.launch.replayed) for cost in costs]
    return len(costs) - sum(replayed) + any(replayed)


def generated_launches(costs: tuple[LaunchCost, ...]) -> int:
    """Count the Triton kernels that the host launches."""
    return sum(cost.work.launch.kind == "triton" and not cost.work.launch.replayed for cost in costs)


def _estimate(problem: Problem, candidate_us: float, sheet: HardwareSheet) -> Estimate:
    eager_us = call_us(reference_costs(problem, sheet), sheet)
    return Estimate(target=sheet.name, candidate_us=candidate_us, eager_us=eager_us, floor_us=floor_us(problem, sheet), model=MODEL)


def _cost(problem: Problem, work: Shared, pointwise_flops: float, sheet: HardwareSheet) -> LaunchCost:
    launch, kernel = work.launch, work.kernel
    held = occupancy(kernel, launch.num_warps, sheet) if kernel and launch.num_warps else None
    stretch = _stretch(launch, sheet)
    compute = flops_us(work.flops, product_tflops(problem, work, sheet)) + flops_us(pointwise_flops, sheet.fp32_tflops)
    return LaunchCost(
        work=work,
        occupancy=held,
        memory_us=_memory_us(problem, work, held, sheet),
        compute_us=compute * stretch,
        issue_us=_issue_us(launch, kernel, sheet) * stretch if kernel else 0.0,
        spill_us=bytes_us(kernel.spill_bytes * _threads(launch, sheet), rates.l2_gbps(sheet)) if kernel else 0.0,
    )


def product_tflops(problem: Problem, work: Shared, sheet: HardwareSheet) -> float:
    """Rate that products reach in this launch, TFLOP/s, on the units its machine code uses."""
    policy, dtype = loosest(problem).name, matmul_dtype(problem)
    if work.family is not None or work.kernel is None:
        policy = problem.policy.of_operator(cudnn=work.family in rates.CUDNN).name
        peak = peak_tflops(sheet, policy, dtype)
        return peak * rates.library_share(work.family, tensor_cores=peak > sheet.fp32_tflops)
    if not uses_tensor(work.kernel):
        return sheet.fp32_tflops * rates.TRITON_FMA_SHARE
    if policy == "exact" and dtype == "float32":
        peak = (sheet.tf32_tflops or sheet.fp32_tflops) / rates.SPLIT_PRODUCTS
    else:
        peak = peak_tflops(sheet, policy, dtype)
    return peak * rates.TRITON_TENSOR_SHARE


def _memory_us(problem: Problem, work: Shared, held: Occupancy | None, sheet: HardwareSheet) -> float:
    nbytes = work.launch.nbytes
    through_l2 = nbytes + _tile_reads(problem, work)
    dram = nbytes - work.l2_bytes
    l2_us = bytes_us(through_l2, rates.l2_gbps(sheet))
    if work.family is not None:
        return max(bytes_us(dram, rates.copy_gbps(sheet) * rates.eager_share(work.family)), l2_us)
    programs = math.prod(work.launch.grid)
    if held is None or held.blocks_per_sm == 0 or programs == 0:
        return max(bytes_us(dram, rates.copy_gbps(sheet)), l2_us)
    return max(_streamed_us(dram, programs, held, work, sheet), l2_us)


def _streamed_us(nbytes: float, programs: int, held: Occupancy, work: Shared, sheet: HardwareSheet) -> float:
    """Time to move `nbytes` by `programs` in waves: the full ones at a full device's rate, the rest at its own."""
    slots = held.blocks_per_sm * sheet.sms
    full, rest = divmod(programs, slots)
    a_program = nbytes / programs
    time = bytes_us(full * slots * a_program, _rate_gbps(slots, work, sheet)) if full else 0.0
    return time + (bytes_us(rest * a_program, _rate_gbps(rest, work, sheet)) if rest else 0.0)


def _rate_gbps(programs: int, work: Shared, sheet: HardwareSheet) -> float:
    """Bandwidth that `programs` programs at once can draw."""
    kernel = work.kernel
    assert kernel is not None
    width = kernel.instructions.get("load_bytes_max", 0)
    rate = rates.copy_gbps(sheet) * rates.WIDTH_SHARE.get(width, 1.0)
    rate = min(rate, min(programs, sheet.sms) * rates.SM_BYTES_PER_CLOCK * sheet.clock_mhz / 1e3)
    flying = in_flight_bytes(work.launch, kernel, sheet)
    if flying:
        # stores wait for nothing: loads in flight carry their part of the traffic
        loads, stores = kernel.instructions["load"], kernel.instructions.get("store", 0)
        rate = min(rate, programs * flying / rates.LATENCY_US / 1e3 * (loads + stores) / loads)
    return rate


def in_flight_bytes(launch: Launch, kernel: KernelResources, sheet: HardwareSheet) -> float:
    """Bytes that one program has on their way from memory at once; 0 where the machine code shows no loads."""
    threads = launch.num_warps * sheet.warp_size
    wanted = kernel.instructions.get("load", 0) * kernel.instructions.get("load_bytes_max", 0) * threads
    return min(wanted, 4 * kernel.registers * threads + kernel.shared_bytes)


def _tile_reads(problem: Problem, work: Shared) -> float:
    rows, columns = work.launch.constants.get("BLOCK_M"), work.launch.constants.get("BLOCK_N")
    if not (work.flops and isinstance(rows, int) and isinstance(columns, int) and rows > 0 and columns > 0):
        return 0.0
    return work.flops / 2 * (1 / rows + 1 / columns) * ITEM_BYTES[matmul_dtype(problem)]


def _issue_us(launch: Launch, kernel: KernelResources, sheet: HardwareSheet) -> float:
    static = sum(kernel.instructions.get(name, 0) for name in CLASSES)
    issued = static * launch.num_warps * math.prod(launch.grid) * _passes(launch, kernel, sheet)
    return issued / (sheet.sms * rates.ISSUES_PER_CLOCK * sheet.clock_mhz)


def _passes(launch: Launch, kernel: KernelResources, sheet: HardwareSheet) -> float:
    """How often a program goes over its static accesses to move its part of the bytes; 1 where the copy engine moves whole tiles."""
    mix, threads = kernel.instructions, _threads(launch, sheet)
    a_pass = threads * sum(mix.get(name, 0) * mix.get(f"{name}_bytes_max", 0) for name in ("load", "store"))
    return max(1.0, launch.nbytes / a_pass) if a_pass and not mix.get("bulk") else 1.0


def _threads(launch: Launch, sheet: HardwareSheet) -> int:
    return launch.num_warps * sheet.warp_size * math.prod(launch.grid)


def _stretch(launch: Launch, sheet: HardwareSheet) -> float:
    """How much longer the busiest multiprocessor works than the average one; 1 for a library's kernel."""
    if launch.kind == "library" or not launch.grid:
        return 1.0
    programs = math.prod(launch.grid)
    return math.ceil(programs / sheet.sms) * sheet.sms / programs if programs else 1.0
