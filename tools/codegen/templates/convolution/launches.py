"""What the launches of a dense convolution do: an implicit GEMM, and the passes that bring its operands to channels last."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.launch import LaunchWork
from tools.codegen.templates.convolution.layout import ConvolutionLayout, convolution_layout_of
from tools.codegen.templates.convolution.slices import SLICES, slices_in
from tools.codegen.templates.convolution.split_float import LEAST_CHANNELS, split_convolution_of
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.prepack import PREPACKED, WEIGHTS
from tools.codegen.templates.shared.split_float import SPLIT_FLOATS, SplitFloat
from tools.codegen.templates.shared.tile_launch import HALVES, TiledSum, pass_launch, tiles_launch
from tools.codegen.templates.shared.work import WARP, WIDEST, nbytes_of, ops_of
from tools.records import ITEM_BYTES, HardwareSheet

GATHER_WORK = 50.0
"""Instructions by which a lane of a convolution finds and reads one element of its input, splitting it included. Fitted on 255 schedules of
25 modules with a convolution of 16 to 128 channels on an H200, by the lab (2026-11-21): the root mean square of ln(modelled / measured) is
0.36 there."""
SCATTERED_WORK = 300.0
"""The same where a step takes elements of several kernel positions, each found by itself: fitted on 46 schedules of eight modules with
3 or 8 channels, 0.47 there."""
SCATTERED_HALVES = 20.0
"""The same of halves, which nothing splits: 14 in the machine code of one channel and 16 summed elements a step (sm_90, Triton 3.6).

A bank of eight filters of 33 halves took at most 182 µs, modelled 1821 with 300 (an H100, 2026-11-27: what two candidates and torch.compile
leave between them)."""
HELD_BYTES = 1 << 24
"""Bytes of an image up to which its second reading finds it in the L2 (`image_halves` in tools/codegen/templates/device)."""
LEFT_LOAD, RIGHT_LOAD, WRITING, APART = 8.0, 6.0, 48.0, 40.0
"""Instructions of a lane for 16 bytes of the images' parts and of the weights', for an element of the result, and for one more where
strides set its neighbours apart. Fitted with `ALONE_JOIN` of the model on 58 settings of eleven convolutions of KernelBench's level 2, one
or three products of halves, on an H100 (2026-11-26): the root mean square of ln(modelled / measured) is 0.16, of one that is transposed
into 513 columns more."""
HELD_APART, BEYOND = 1.2, 20.0
"""Registers of an element of a lane while results are written that strides set apart, and instructions for each that a thread lacks: with
128, 64 and 32 elements a thread 427, 160 to 265 and 96 to 128 in the machine code of ten tilings for sm_90. With 128 and four warps a
softmax over channels took 1432 µs, with 64 and eight 1223 (an H100, 2026-11-26; level 2, problem 91 of KernelBench)."""
SHORT_STEP = 16.0
"""Summed elements whose products cost as much time as what a step does besides: steps of 32 took 1.24 times as long as those of 64 with
tiles of 128 by 128 and eight warps, steps of 16 took 1.4 times as long as those of 32 with tiles of 128 by 64 (an H100)."""
HALF = 2
"""Bytes of an element's only part."""
PARTS_SHARE = 0.72
"""Share of the copy rate at which images are brought to halves: eleven of those took 1.2 to 1.4 times as long as a copy of their bytes."""


def convolution_launches(kernel: Kernel, parameters: Settings, sheet: HardwareSheet) -> tuple[LaunchWork, ...]:
    """A dense convolution as the product it is, its left operand gathered; before it both operands are brought to channels last."""
    plan = convolution_layout_of(kernel)
    assert kernel.convolution is not None
    block_k, split_float = int(parameters["BLOCK_K"]), SPLIT_FLOATS.get(str(parameters["precision"]))
    parts, count = split_convolution_of(kernel), int(parameters.get(SLICES, 1))
    channels, taps = (parts.n_channels, parts.n_taps) if split_float else (plan.n_inputs, plan.n_taps)
    # a step takes channels of one element of the kernel, or elements of several where channels are few
    each_tap = channels >= LEAST_CHANNELS
    steps = taps * math.ceil(channels / block_k) if each_tap else math.ceil(taps * channels / block_k)
    rows, cols = math.ceil(plan.n_positions / int(parameters["BLOCK_M"])), math.ceil(plan.n_channels / int(parameters["BLOCK_N"]))
    slices = slices_in(kernel, count, parts=split_float is not None) if count > 1 else None
    if slices:
        plane = math.ceil(plan.n_positions / plan.n_slices / int(parameters["BLOCK_M"]))
        rows = math.ceil(plan.n_slices / slices.count) * slices.count * plane
    work = TiledSum(
        tiles=plan.n_images * plan.n_groups * plan.n_phases * rows * cols,
        splits=1,
        steps=steps,
        moved=float(sum(nbytes_of(a) for a in plan.accesses)),
        dtype=plan.dtype,
        straight=False,
        gathered=GATHER_WORK if each_tap else SCATTERED_HALVES if plan.dtype in HALVES and not split_float else SCATTERED_WORK,
    )
    image, weights = float(nbytes_of(plan.source)), float(nbytes_of(plan.weight))
    packed = parameters.get(WEIGHTS) == PREPACKED and plan.weight.fixed
    moved = [2.0 * image, 2.0 * weights]
    if split_float:
        # an image is read for its largest element, and again to be written: from the L2, unless that is too small for it
        growths = (parts.weight_growth, parts.growth)
        weights, image_parts = (
            nbytes * (1 + split_float.nbytes / 4 * growth) for nbytes, growth in zip((weights, image), growths, strict=True)
        )
        once = image / plan.n_images <= HELD_BYTES
        moved = [(image_parts + (0.0 if once else image)) / PARTS_SHARE + (0.0 if packed else weights)]
        if kernel.convolution.handed and split_float.nbytes == HALF:
            # what writes the image writes halves
            moved = [] if packed else [weights]
    elif packed:
        moved = moved[:1]
    copies = tuple(pass_launch(nbytes, sheet) for nbytes in moved)
    launch, reads = tiles_launch(work, parameters, ops_of(kernel), sheet), Reads()
    if slices:
        reads = Reads(slices.count, len(slices.read), slices.convolution.size[0])
        launch = reads.shared(launch, parameters, split_float.nbytes if split_float else ITEM_BYTES[plan.dtype])
    return (_of_halves(launch, kernel, plan, parameters, split_float, reads, sheet) if split_float and each_tap else launch, *copies)


@dataclass(frozen=True)
class Reads:
    """How many tiles a step of a program reads, and for how many of the result."""

    results: int = 1
    images: int = 1
    weights: int = 1

    def elements(self, parameters: Settings, image: float = 1.0, weight: float = 1.0) -> float:
        """Elements that a step reads, each counted so often."""
        block_m, block_n, block_k = (int(parameters[name]) for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))
        return (image * self.images * block_m + weight * self.weights * block_n) * block_k

    def shared(self, launch: LaunchWork, parameters: Settings, nbytes: int) -> LaunchWork:
        """Make one program of those that would make one slice each: it has a sum for each, and reads what they share once."""
        programs, steps, stages = launch.programs // self.results, launch.steps / self.weights, int(parameters["num_stages"])
        read, sums = self.elements(parameters) * nbytes, (launch.registers - 40) * self.results
        return launch._replace(
            programs=programs,
            steps=steps,
            l2_bytes=programs * steps * read,
            flight_bytes=read * max(1, stages - 1),
            shared_bytes=read * stages,
            registers=40 + sums,
        )


def _of_halves(
    launch: LaunchWork,
    kernel: Kernel,
    plan: ConvolutionLayout,
    parameters: Settings,
    split: SplitFloat,
    reads: Reads,
    sheet: HardwareSheet,
) -> LaunchWork:
    """The launch of a tile whose operands lie as parts: what its warps issue, and the registers they hold."""
    block_m, block_n, block_k, warps = (int(parameters[name]) for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K", "num_warps"))
    threads, tile = warps * WARP, block_m * block_n * reads.results
    vectors = 1 + sum(not set(a.strides) & set(plan.axes[-2].atoms) for a in plan.accesses if a not in (plan.source, plan.weight))
    several = len(split.parts) > 1
    loads = reads.elements(parameters, LEFT_LOAD, RIGHT_LOAD) * split.nbytes / WIDEST
    wide = any(set(a.strides) & set(plan.axes[-1].atoms) for a in plan.accesses if a.is_output)
    written = tile * ((WRITING + (APART if plan.n_phases > 1 else 0.0) if wide else 0.0) + ops_of(kernel))
    held = tile / threads + max(tile / threads if several else 0.0, block_n / 4 * vectors)
    apart = plan.n_phases > 1 and wide
    written += BEYOND * max(0.0, threads * (36 + held - sheet.max_registers_per_thread) + HELD_APART * tile) if apart else 0.0
    outputs = sum(nbytes_of(a) for a in plan.accesses if a.is_output)
    return launch._replace(
        serial=True,
        lane_work=launch.programs * (launch.steps * (loads + (2.0 * tile * reads.weights if several else 0.0)) + written),
        tail_work=0.0,
        product_tflops=launch.product_tflops / (1 + SHORT_STEP / block_k / reads.weights),
        registers=36 + held,
        dram_bytes=launch.dram_bytes - nbytes_of(plan.source) * (1 - split.nbytes / 4),
        l2_bytes=launch.l2_bytes + outputs * (2 if plan.n_phases > 1 else 1),
    )
